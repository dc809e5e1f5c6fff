#include "text/symbol.h"

namespace tandem {

namespace {

// The tables of coqui-tts 0.28; the euro is ours. Japanese has none there.
struct Symbols {
  std::u32string_view ampersand, at, percent, hash, dollar, pound, degree, euro;
};
constexpr Symbols table[language_count] = {
    {U" and ", U" at ", U" percent ", U" hash ", U" dollar ", U" pound ", U" degree ",
     U" euro "},  // en
    {U" y ", U" arroba ", U" por ciento ", U" numeral ", U" dolar ", U" libra ", U" grados ",
     U" euro "},  // es
    {U" et ", U" arobase ", U" pour cent ", U" dièse ", U" dollar ", U" livre ", U" degrés ",
     U" euro "},  // fr
    {U" und ", U" at ", U" prozent ", U" raute ", U" dollar ", U" pfund ", U" grad ",
     U" euro "},  // de
    {U" e ", U" chiocciola ", U" per cento ", U" cancelletto ", U" dollaro ", U" sterlina ",
     U" gradi ", U" euro "},  // it
    {U" e ", U" arroba ", U" por cento ", U" cardinal ", U" dólar ", U" libra ", U" graus ",
     U" euro "},  // pt
    {U" i ", U" małpa ", U" procent ", U" krzyżyk ", U" dolar ", U" funt ", U" stopnie ",
     U" euro "},  // pl
    {U" ve ", U" at ", U" yüzde ", U" diyez ", U" dolar ", U" sterlin ", U" derece ",
     U" avro "},  // tr
    {U" и ", U" собака ", U" процентов ", U" номер ", U" доллар ", U" фунт ", U" градус ",
     U" евро "},  // ru
    {U" en ", U" bij ", U" procent ", U" hekje ", U" dollar ", U" pond ", U" graden ",
     U" euro "},  // nl
    {U" a ", U" na ", U" procento ", U" křížek ", U" dolar ", U" libra ", U" stupně ",
     U" euro "},                                                                               // cs
    {U" و ", U" على ", U" في المئة ", U" رقم ", U" دولار ", U" جنيه ", U" درجة ", U" يورو "},  // ar
    {U" 和 ", U" 在 ", U" 百分之 ", U" 号 ", U" 美元 ", U" 英镑 ", U" 度 ", U" 欧元 "},        // zh
    {U" és ", U" kukac ", U" százalék ", U" kettőskereszt ", U" dollár ", U" font ", U" fok ",
     U" euró "},  // hu
    {U" 그리고 ", U" 에 ", U" 퍼센트 ", U" 번호 ", U" 달러 ", U" 파운드 ", U" 도 ",
     U" 유로 "},  // ko
    {U" アンド ", U" アット ", U" パーセント ", U" シャープ ", U" ドル ", U" ポンド ", U" 度 ",
     U" ユーロ "},  // ja
    {U" और ", U" ऐट दी रेट ", U" प्रतिशत ", U" हैश ", U" डॉलर ", U" पाउंड ", U" डिग्री ",
     U" यूरो "},  // hi
};

}  // namespace

std::u32string expand_symbols(std::u32string_view text, LanguageId language, CleanStyle style) {
  const Symbols& symbols = table[static_cast<size_t>(language)];
  std::u32string result;
  result.reserve(text.size() + 16);
  for (const char32_t c : text) {
    switch (c) {
      case U'&': result += symbols.ampersand; break;
      case U'@': result += symbols.at; break;
      case U'%': result += symbols.percent; break;
      case U'#': result += symbols.hash; break;
      case U'$': result += symbols.dollar; break;
      case U'£': result += symbols.pound; break;
      case U'°': result += symbols.degree; break;
      case U'€':
        if (style == CleanStyle::best) {
          result += symbols.euro;
          break;
        }
        [[fallthrough]];
      default: result.push_back(c);
    }
  }
  return result;
}

}  // namespace tandem
