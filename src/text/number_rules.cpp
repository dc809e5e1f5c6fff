#include "text/number_rules.h"

namespace tandem {

namespace {

constexpr const char* english = R"(%main:
0: zero; one; two; three; four; five; six; seven; eight; nine; ten; eleven; twelve; thirteen;
14: fourteen; fifteen; sixteen; seventeen; eighteen; nineteen;
20: twenty[->>]; 30: thirty[->>]; 40: forty[->>]; 50: fifty[->>]; 60: sixty[->>];
70: seventy[->>]; 80: eighty[->>]; 90: ninety[->>];
100: << hundred[ and >>]; 1000: << thousand[>%%rest>]; 1000000: << million[>%%rest>];
1000000000: << billion[>%%rest>]; 1000000000000: << trillion[>%%rest>];
1000000000000000: << quadrillion[>%%rest>];
%%rest:
1: ' and =%main=; 100: , =%main=;
)";

constexpr const char* spanish = R"(%main:
0: cero; uno; dos; tres; cuatro; cinco; seis; siete; ocho; nueve; diez; once; doce; trece;
14: catorce; quince; dieciséis; diecisiete; dieciocho; diecinueve; veinte; veintiuno; veintidós;
23: veintitrés; veinticuatro; veinticinco; veintiséis; veintisiete; veintiocho; veintinueve;
30: treinta[ y >>]; 40: cuarenta[ y >>]; 50: cincuenta[ y >>]; 60: sesenta[ y >>];
70: setenta[ y >>]; 80: ochenta[ y >>]; 90: noventa[ y >>];
100: cien; 101: ciento >>; 200: doscientos[ >>]; 300: trescientos[ >>]; 400: cuatrocientos[ >>];
500: quinientos[ >>]; 600: seiscientos[ >>]; 700: setecientos[ >>]; 800: ochocientos[ >>];
900: novecientos[ >>]; 1000: mil[ >>]; 2000: << mil[ >>];
1000000: un millón[ >>]; 2000000: << millones[ >>];
1000000000000: un billón[ >>]; 2000000000000: << billones[ >>];
)";

constexpr const char* french = R"(%main:
0: zéro; un; deux; trois; quatre; cinq; six; sept; huit; neuf; dix; onze; douze; treize;
14: quatorze; quinze; seize; dix-sept; dix-huit; dix-neuf;
20: vingt; 21: vingt et un; 22: vingt->>; 30: trente; 31: trente et un; 32: trente->>;
40: quarante; 41: quarante et un; 42: quarante->>; 50: cinquante; 51: cinquante et un;
52: cinquante->>; 60: soixante; 61: soixante et un; 62/20: soixante->>; 71: soixante et onze;
72/20: soixante->>; 80: quatre-vingts; 81/20: quatre-vingt->>;
100: cent[ >>]; 200: << cents; 201: << cent >>;
1000: mille[ >>]; 2000: <%%bare< mille[ >>]; 1000000: un million[ >>]; 2000000: << millions[ >>];
1000000000: un milliard[ >>]; 2000000000: << milliards[ >>];
1000000000000: un billion[ >>]; 2000000000000: << billions[ >>];
1000000000000000: un billiard[ >>]; 2000000000000000: << billiards[ >>];
%%bare:
0: =%main=; 80: quatre-vingt; 81: =%main=; 100: cent[ >%%bare>]; 200: << cent[ >%%bare>];
)";

constexpr const char* german = R"(%main:
0: null; eins; zwei; drei; vier; fünf; sechs; sieben; acht; neun; zehn; elf; zwölf; dreizehn;
14: vierzehn; fünfzehn; sechzehn; siebzehn; achtzehn; neunzehn;
20: [>%%one>und]zwanzig; 30: [>%%one>und]dreißig; 40: [>%%one>und]vierzig;
50: [>%%one>und]fünfzig; 60: [>%%one>und]sechzig; 70: [>%%one>und]siebzig;
80: [>%%one>und]achtzig; 90: [>%%one>und]neunzig;
100: <%%one<hundert[>>]; 1000: <%%one<tausend[>>];
1000000: eine Million[ >>]; 2000000: << Millionen[ >>];
1000000000: eine Milliarde[ >>]; 2000000000: << Milliarden[ >>];
1000000000000: eine Billion[ >>]; 2000000000000: << Billionen[ >>];
1000000000000000: eine Billiarde[ >>]; 2000000000000000: << Billiarden[ >>];
%%one:
0: =%main=; 1: ein; 2: =%main=;
)";

constexpr const char* italian = R"(%main:
0: zero; uno; due; tre; quattro; cinque; sei; sette; otto; nove; dieci; undici; dodici; tredici;
14: quattordici; quindici; sedici; diciassette; diciotto; diciannove;
20: venti; 21: vent>>; 22: venti>>; 28: vent>>; 29: venti>>;
30: trenta; 31: trent>>; 32: trenta>>; 38: trent>>; 39: trenta>>;
40: quaranta; 41: quarant>>; 42: quaranta>>; 48: quarant>>; 49: quaranta>>;
50: cinquanta; 51: cinquant>>; 52: cinquanta>>; 58: cinquant>>; 59: cinquanta>>;
60: sessanta; 61: sessant>>; 62: sessanta>>; 68: sessant>>; 69: sessanta>>;
70: settanta; 71: settant>>; 72: settanta>>; 78: settant>>; 79: settanta>>;
80: ottanta; 81: ottant>>; 82: ottanta>>; 88: ottant>>; 89: ottanta>>;
90: novanta; 91: novant>>; 92: novanta>>; 98: novant>>; 99: novanta>>;
100: cento[>>]; 200: <<cento[>>]; 1000: mille[>>]; 2000: <<mila[>>];
1000000: un milione[ e >>]; 2000000: << milioni[ e >>];
1000000000: un miliardo[ e >>]; 2000000000: << miliardi[ e >>];
1000000000000: un bilione[ e >>]; 2000000000000: << bilioni[ e >>];
1000000000000000: un biliardo[ e >>]; 2000000000000000: << biliardi[ e >>];
)";

constexpr const char* portuguese = R"(%main:
0: zero; um; dois; três; quatro; cinco; seis; sete; oito; nove; dez; onze; doze; treze; catorze;
15: quinze; dezasseis; dezassete; dezoito; dezanove;
20: vinte[ e >>]; 30: trinta[ e >>]; 40: quarenta[ e >>]; 50: cinquenta[ e >>];
60: sessenta[ e >>]; 70: setenta[ e >>]; 80: oitenta[ e >>]; 90: noventa[ e >>];
100: cem; 101: cento e >>; 200: duzentos[ e >>]; 300: trezentos[ e >>]; 400: quatrocentos[ e >>];
500: quinhentos[ e >>]; 600: seiscentos[ e >>]; 700: setecentos[ e >>]; 800: oitocentos[ e >>];
900: novecentos[ e >>]; 1000: mil[ e >>]; 2000: << mil[ e >>];
1000000: um milhão[ e >>]; 2000000: << milhões[ e >>];
1000000000000: um bilião[ e >>]; 2000000000000: << biliões[ e >>];
)";

constexpr const char* dutch = R"(%main:
0: nul; één; twee; drie; vier; vijf; zes; zeven; acht; negen; tien; elf; twaalf; dertien;
14: veertien; vijftien; zestien; zeventien; achttien; negentien;
20: [>%%and>]twintig; 30: [>%%and>]dertig; 40: [>%%and>]veertig; 50: [>%%and>]vijftig;
60: [>%%and>]zestig; 70: [>%%and>]zeventig; 80: [>%%and>]tachtig; 90: [>%%and>]negentig;
100: honderd[>>]; 200: <<honderd[>>]; 1000: duizend[>>]; 2000: <<duizend[>>];
1000000: een miljoen[ >>]; 2000000: << miljoen[ >>];
1000000000: een miljard[ >>]; 2000000000: << miljard[ >>];
1000000000000: een biljoen[ >>]; 2000000000000: << biljoen[ >>];
1000000000000000: een biljard[ >>]; 2000000000000000: << biljard[ >>];
%%and:
0: =%main=; 1: eenen; 2: tweeën; 3: drieën; 4: =%main=en;
)";

constexpr const char* turkish = R"(%main:
0: sıfır; bir; iki; üç; dört; beş; altı; yedi; sekiz; dokuz;
10: on[>>]; 20: yirmi[>>]; 30: otuz[>>]; 40: kırk[>>]; 50: elli[>>]; 60: altmış[>>];
70: yetmiş[>>]; 80: seksen[>>]; 90: doksan[>>]; 100: yüz[>>]; 200: <<yüz[>>];
1000: bin[>>]; 2000: <<bin[>>]; 1000000: <<milyon[>>]; 1000000000: <<milyar[>>];
1000000000000: <<trilyon[>>]; 1000000000000000: <<katrilyon[>>];
)";

// `%%part` is what stands before and after a larger unit: "két", not "kettő".
constexpr const char* hungarian = R"(%main:
0: nulla; egy; kettő; három; négy; öt; hat; hét; nyolc; kilenc;
10: tíz; 11: tizen>>; 20: húsz; 21: huszon>>; 30: harminc[>>]; 40: negyven[>>]; 50: ötven[>>];
60: hatvan[>>]; 70: hetven[>>]; 80: nyolcvan[>>]; 90: kilencven[>>];
100: száz[>%%part>]; 200: <%%part<száz[>%%part>]; 1000: ezer[>%%part>];
2000: <%%part<ezer[->%%part>]; 1000000: <%%part<millió[->%%part>];
1000000000: <%%part<milliárd[->%%part>]; 1000000000000: <%%part<billió[->%%part>];
1000000000000000: <%%part<billiárd[->%%part>];
%%part:
0: =%main=; 2: két; 3: =%main=;
)";

constexpr const char* polish = R"(%main:
0: zero; jeden; dwa; trzy; cztery; pięć; sześć; siedem; osiem; dziewięć; dziesięć; jedenaście;
12: dwanaście; trzynaście; czternaście; piętnaście; szesnaście; siedemnaście; osiemnaście;
19: dziewiętnaście; 20: dwadzieścia[ >>]; 30: trzydzieści[ >>]; 40: czterdzieści[ >>];
50: pięćdziesiąt[ >>]; 60: sześćdziesiąt[ >>]; 70: siedemdziesiąt[ >>]; 80: osiemdziesiąt[ >>];
90: dziewięćdziesiąt[ >>]; 100: sto[ >>]; 200: dwieście[ >>]; 300: trzysta[ >>];
400: czterysta[ >>]; 500: pięćset[ >>]; 600: sześćset[ >>]; 700: siedemset[ >>];
800: osiemset[ >>]; 900: dziewięćset[ >>];
1000: tysiąc[ >>]; 2000: << $(cardinal,few{tysiące}other{tysięcy})$[ >>];
1000000: milion[ >>]; 2000000: << $(cardinal,few{miliony}other{milionów})$[ >>];
1000000000: miliard[ >>]; 2000000000: << $(cardinal,few{miliardy}other{miliardów})$[ >>];
1000000000000: bilion[ >>]; 2000000000000: << $(cardinal,few{biliony}other{bilionów})$[ >>];
1000000000000000: biliard[ >>];
2000000000000000: << $(cardinal,few{biliardy}other{biliardów})$[ >>];
)";

constexpr const char* czech = R"(%main:
0: nula; jedna; dva; tři; čtyři; pět; šest; sedm; osm; devět; deset; jedenáct; dvanáct; třináct;
14: čtrnáct; patnáct; šestnáct; sedmnáct; osmnáct; devatenáct;
20: dvacet[ >>]; 30: třicet[ >>]; 40: čtyřicet[ >>]; 50: padesát[ >>]; 60: šedesát[ >>];
70: sedmdesát[ >>]; 80: osmdesát[ >>]; 90: devadesát[ >>];
100: sto[ >>]; 200: dvěstě[ >>]; 300: třista[ >>]; 400: čtyřista[ >>]; 500: pětset[ >>];
600: šestset[ >>]; 700: sedmset[ >>]; 800: osmset[ >>]; 900: devětset[ >>];
1000: tisíc[ >>]; 2000: << $(cardinal,few{tisíce}other{tisíc})$[ >>];
1000000: milion[ >>]; 2000000: << $(cardinal,few{miliony}other{milionů})$[ >>];
1000000000: miliarda[ >>]; 2000000000: << $(cardinal,few{miliardy}other{miliard})$[ >>];
1000000000000: bilion[ >>]; 2000000000000: << $(cardinal,few{biliony}other{bilionů})$[ >>];
1000000000000000: biliarda[ >>];
2000000000000000: << $(cardinal,few{biliardy}other{biliard})$[ >>];
)";

// `%feminine` stands before "целая": num2words makes the millions feminine as well.
constexpr const char* russian = R"(%main:
0: ноль; один; два; три; четыре; пять; шесть; семь; восемь; девять; десять; одиннадцать;
12: двенадцать; тринадцать; четырнадцать; пятнадцать; шестнадцать; семнадцать; восемнадцать;
19: девятнадцать; 20: двадцать[ >>]; 30: тридцать[ >>]; 40: сорок[ >>]; 50: пятьдесят[ >>];
60: шестьдесят[ >>]; 70: семьдесят[ >>]; 80: восемьдесят[ >>]; 90: девяносто[ >>];
100: сто[ >>]; 200: двести[ >>]; 300: триста[ >>]; 400: четыреста[ >>]; 500: пятьсот[ >>];
600: шестьсот[ >>]; 700: семьсот[ >>]; 800: восемьсот[ >>]; 900: девятьсот[ >>];
1000: <%feminine< $(cardinal,one{тысяча}few{тысячи}other{тысяч})$[ >>];
1000000: << $(cardinal,one{миллион}few{миллиона}other{миллионов})$[ >>];
1000000000: << $(cardinal,one{миллиард}few{миллиарда}other{миллиардов})$[ >>];
1000000000000: << $(cardinal,one{триллион}few{триллиона}other{триллионов})$[ >>];
1000000000000000: << $(cardinal,one{квадриллион}few{квадриллиона}other{квадриллионов})$[ >>];
%feminine:
0: =%main=; 1: одна; две; 3: =%main=; 20: двадцать[ >>]; 30: тридцать[ >>]; 40: сорок[ >>];
50: пятьдесят[ >>]; 60: шестьдесят[ >>]; 70: семьдесят[ >>]; 80: восемьдесят[ >>];
90: девяносто[ >>]; 100: сто[ >>]; 200: двести[ >>]; 300: триста[ >>]; 400: четыреста[ >>];
500: пятьсот[ >>]; 600: шестьсот[ >>]; 700: семьсот[ >>]; 800: восемьсот[ >>];
900: девятьсот[ >>]; 1000: << $(cardinal,one{тысяча}few{тысячи}other{тысяч})$[ >>];
1000000: << $(cardinal,one{миллион}few{миллиона}other{миллионов})$[ >>];
1000000000: << $(cardinal,one{миллиард}few{миллиарда}other{миллиардов})$[ >>];
1000000000000: << $(cardinal,one{триллион}few{триллиона}other{триллионов})$[ >>];
1000000000000000: << $(cardinal,one{квадриллион}few{квадриллиона}other{квадриллионов})$[ >>];
)";

constexpr const char* korean = R"(%main:
0: 영; 일; 이; 삼; 사; 오; 육; 칠; 팔; 구; 10: 십[>>]; 20: <<십[>>]; 100: 백[>>]; 200: <<백[>>];
1000: 천[>>]; 2000: <<천[>>]; 10000/10000: 만[ >>]; 20000/10000: <<만[ >>];
100000000/10000: <<억[ >>]; 1000000000000/10000: <<조[ >>]; 10000000000000000/10000: <<경[ >>];
)";

}  // namespace

NumberRules number_rules(LanguageId language) {
  switch (language) {
    case LanguageId::en: return {english, "en"};
    case LanguageId::es: return {spanish, "es"};
    case LanguageId::fr: return {french, "fr"};
    case LanguageId::de: return {german, "de"};
    case LanguageId::it: return {italian, "it"};
    case LanguageId::pt: return {portuguese, "pt"};
    case LanguageId::pl: return {polish, "pl"};
    case LanguageId::tr: return {turkish, "tr"};
    case LanguageId::ru: return {russian, "ru"};
    case LanguageId::nl: return {dutch, "nl"};
    case LanguageId::cs:  // num2words gives Czech the plural forms of Polish
      return {czech, "pl"};
    case LanguageId::hu: return {hungarian, "hu"};
    case LanguageId::ko: return {korean, "ko"};
    case LanguageId::ar:
    case LanguageId::zh:
    case LanguageId::ja:
    case LanguageId::hi: break;
  }
  return {nullptr, nullptr};
}

}  // namespace tandem
