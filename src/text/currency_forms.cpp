#include "text/currency_forms.h"

namespace tandem {

namespace {

using Forms = CurrencyForms;

Forms pick(Currency currency, const Forms& pound, const Forms& dollar, const Forms& euro) {
  return currency == Currency::pound ? pound : currency == Currency::dollar ? dollar : euro;
}

}  // namespace

CurrencyForms num2words_forms(LanguageId language, Currency currency) {
  switch (language) {
    case LanguageId::en:
    case LanguageId::hu:
      return pick(currency, {{"pound sterling", "pounds sterling"}, {"penny", "pence"}},
                  {{"dollar", "dollars"}, {"cent", "cents"}},
                  {{"euro", "euro"}, {"cent", "cents"}});
    case LanguageId::es:
      return pick(currency, {{"libra", "libras"}, {"penique", "peniques"}},
                  {{"dólar", "dólares"}, {"centavo", "centavos"}},
                  {{"euro", "euros"}, {"céntimo", "céntimos"}});
    case LanguageId::fr:
      return pick(currency, {{"livre", "livres"}, {"penny", "pence"}},
                  {{"dollar", "dollars"}, {"cent", "cents"}},
                  {{"euro", "euros"}, {"centime", "centimes"}});
    case LanguageId::de:
      return pick(currency, {{"Pfund", "Pfund"}, {"Penny", "Pence"}},
                  {{"Dollar", "Dollar"}, {"Cent", "Cent"}}, {{"Euro", "Euro"}, {"Cent", "Cent"}});
    case LanguageId::it:
      return pick(currency, {{"sterlina", "sterline"}, {"penny", "penny"}},
                  {{"dollaro", "dollari"}, {"centesimo", "centesimi"}},
                  {{"euro", "euro"}, {"centesimo", "centesimi"}});
    case LanguageId::pt:
      return pick(currency, {{"libra", "libras"}, {"péni", "pence"}},
                  {{"dólar", "dólares"}, {"cêntimo", "cêntimos"}},
                  {{"euro", "euros"}, {"cêntimo", "cêntimos"}});
    case LanguageId::nl:
      return pick(currency, {{"pond", "pond"}, {"penny", "penny"}},
                  {{"dollar", "dollar"}, {"cent", "cent"}}, {{"euro", "euro"}, {"cent", "cent"}});
    case LanguageId::pl:
      return pick(currency, {},
                  {{"dolar amerykański", "dolary amerykańskie", "dolarów amerykańskich"},
                   {"cent", "centy", "centów"}},
                  {{"euro", "euro", "euro"}, {"cent", "centy", "centów"}});
    case LanguageId::ru:
      return pick(currency, {}, {{"доллар", "доллара", "долларов"}, {"цент", "цента", "центов"}},
                  {{"евро", "евро", "евро"}, {"цент", "цента", "центов"}});
    case LanguageId::cs:
      return pick(currency, {}, {}, {{"euro", "euro", "euro"}, {"cent", "centy", "centů"}});
    case LanguageId::ko: return pick(currency, {}, {{"달러"}, {"센트"}}, {});
    default: return {};
  }
}

CurrencyForms spoken_forms(LanguageId language, Currency currency) {
  const Forms known = num2words_forms(language, currency);
  switch (language) {
    case LanguageId::hu:
      return pick(currency, {{"font", "font"}, {"penny", "penny"}},
                  {{"dollár", "dollár"}, {"cent", "cent"}}, {{"euró", "euró"}, {"cent", "cent"}});
    case LanguageId::tr:
      return pick(currency, {{"sterlin", "sterlin"}, {"peni", "peni"}},
                  {{"dolar", "dolar"}, {"sent", "sent"}}, {{"avro", "avro"}, {"sent", "sent"}});
    case LanguageId::ko:
      return pick(currency, {{"파운드", "파운드"}, {"펜스", "펜스"}},
                  {{"달러", "달러"}, {"센트", "센트"}}, {{"유로", "유로"}, {"센트", "센트"}});
    case LanguageId::hi:
      return pick(currency, {{"पाउंड", "पाउंड"}, {"पेंस", "पेंस"}}, {{"डॉलर", "डॉलर"}, {"सेंट", "सेंट"}},
                  {{"यूरो", "यूरो"}, {"सेंट", "सेंट"}});
    case LanguageId::cs:
      return pick(currency, {{"libra", "libry", "liber"}, {"penny", "pence", "pencí"}},
                  {{"dolar", "dolary", "dolarů"}, {"cent", "centy", "centů"}}, known);
    case LanguageId::pl:
      return pick(currency, {{"funt", "funty", "funtów"}, {"pens", "pensy", "pensów"}},
                  {{"dolar", "dolary", "dolarów"}, {"cent", "centy", "centów"}}, known);
    case LanguageId::ru:
      return pick(currency, {{"фунт", "фунта", "фунтов"}, {"пенс", "пенса", "пенсов"}}, known,
                  known);
    case LanguageId::nl:
      return pick(currency, {{"pond", "pond"}, {"penny", "pence"}}, known, known);
    case LanguageId::en:
      return pick(currency, {{"pound", "pounds"}, {"penny", "pence"}}, known,
                  {{"euro", "euros"}, {"cent", "cents"}});
    default: return known;
  }
}

ArabicUnits arabic_units(Currency currency) {
  switch (currency) {
    case Currency::pound:
      return {.unit = {"جنيه", "جنيهان", "جنيهات", "جنيهاً"},
              .part = {"بنس", "بنسان", "بنسات", "بنساً"},
              .separator = "و"};
    case Currency::dollar:
      return {.unit = {"دولار", "دولاران", "دولارات", "دولاراً"},
              .part = {"سنت", "سنتان", "سنتات", "سنتاً"},
              .separator = "و"};
    case Currency::euro: break;
  }
  return {.unit = {"يورو", "يورو", "يورو", "يورو"},
          .part = {"سنت", "سنتان", "سنتات", "سنتاً"},
          .separator = "و"};
}

}  // namespace tandem
