#include "text/abbreviation.h"

#include <span>

#include "text/clean_characters.h"

namespace tandem {

namespace {

struct Abbreviation {
  std::u32string_view shape;
  std::u32string_view words;
};

// The tables of coqui-tts 0.28, in its order, which matters: each is applied to what the one
// before it left. A full stop follows each but the Russian ones.
constexpr Abbreviation en[] = {
    {U"mrs", U"misess"},   {U"mr", U"mister"},    {U"dr", U"doctor"},     {U"st", U"saint"},
    {U"co", U"company"},   {U"jr", U"junior"},    {U"maj", U"major"},     {U"gen", U"general"},
    {U"drs", U"doctors"},  {U"rev", U"reverend"}, {U"lt", U"lieutenant"}, {U"hon", U"honorable"},
    {U"sgt", U"sergeant"}, {U"capt", U"captain"}, {U"esq", U"esquire"},   {U"ltd", U"limited"},
    {U"col", U"colonel"},  {U"ft", U"fort"},
};
constexpr Abbreviation es[] = {
    {U"sra", U"señora"}, {U"sr", U"señor"},    {U"dr", U"doctor"}, {U"dra", U"doctora"},
    {U"st", U"santo"},   {U"co", U"compañía"}, {U"jr", U"junior"}, {U"ltd", U"limitada"},
};
constexpr Abbreviation fr[] = {
    {U"mme", U"madame"},   {U"mr", U"monsieur"}, {U"dr", U"docteur"},  {U"st", U"saint"},
    {U"co", U"compagnie"}, {U"jr", U"junior"},   {U"ltd", U"limitée"},
};
constexpr Abbreviation de[] = {
    {U"fr", U"frau"}, {U"dr", U"doktor"}, {U"st", U"sankt"}, {U"co", U"firma"}, {U"jr", U"junior"},
};
constexpr Abbreviation it[] = {
    {U"sig", U"signore"},  {U"dr", U"dottore"}, {U"st", U"santo"},
    {U"co", U"compagnia"}, {U"jr", U"junior"},  {U"ltd", U"limitata"},
};
constexpr Abbreviation pt[] = {
    {U"sra", U"senhora"}, {U"sr", U"senhor"},    {U"dr", U"doutor"}, {U"dra", U"doutora"},
    {U"st", U"santo"},    {U"co", U"companhia"}, {U"jr", U"júnior"}, {U"ltd", U"limitada"},
};
constexpr Abbreviation pl[] = {
    {U"p", U"pani"}, {U"m", U"pan"}, {U"dr", U"doktor"}, {U"sw", U"święty"}, {U"jr", U"junior"},
};
constexpr Abbreviation tr[] = {
    {U"b", U"bay"},
    {U"byk", U"büyük"},
    {U"dr", U"doktor"},
};
constexpr Abbreviation ru[] = {
    {U"г-жа", U"госпожа"},
    {U"г-н", U"господин"},
    {U"д-р", U"доктор"},
};
constexpr Abbreviation nl[] = {
    {U"dhr", U"de heer"},
    {U"mevr", U"mevrouw"},
    {U"dr", U"dokter"},
    {U"jhr", U"jonkheer"},
};
constexpr Abbreviation cs[] = {
    {U"dr", U"doktor"},
    {U"ing", U"inženýr"},
    {U"p", U"pan"},
};
constexpr Abbreviation hu[] = {
    {U"dr", U"doktor"},
    {U"b", U"bácsi"},
    {U"nőv", U"nővér"},
};

std::span<const Abbreviation> table(LanguageId language) {
  switch (language) {
    case LanguageId::en: return en;
    case LanguageId::es: return es;
    case LanguageId::fr: return fr;
    case LanguageId::de: return de;
    case LanguageId::it: return it;
    case LanguageId::pt: return pt;
    case LanguageId::pl: return pl;
    case LanguageId::tr: return tr;
    case LanguageId::ru: return ru;
    case LanguageId::nl: return nl;
    case LanguageId::cs: return cs;
    case LanguageId::hu: return hu;
    default: return {};
  }
}

// Python's IGNORECASE takes the long s and the dotless i for s and i.
char32_t folded(char32_t c) { return c == U'ſ' ? U's' : c == U'ı' ? U'i' : c; }

bool stands_at(std::u32string_view text, size_t at, std::u32string_view shape) {
  if (text.size() - at < shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (folded(text[at + i]) != folded(shape[i])) return false;
  }
  return true;
}

}  // namespace

std::u32string expand_abbreviations(std::u32string text, LanguageId language) {
  const bool has_stop = language != LanguageId::ru;
  const char32_t mark = has_stop ? U'.' : U'-';
  if (text.find(mark) == std::u32string::npos) return text;
  for (const auto& [shape, words] : table(language)) {
    const size_t in_shape = has_stop ? shape.size() : shape.find(mark);
    std::u32string result;
    size_t copied = 0;
    for (size_t at = text.find(mark); at != std::u32string::npos; at = text.find(mark, at + 1)) {
      if (at < copied + in_shape || !stands_at(text, at - in_shape, shape)) continue;
      const size_t start = at - in_shape;
      const size_t end = start + shape.size() + (has_stop ? 1 : 0);
      if (!is_boundary(start == 0 ? 0 : text[start - 1], text[start])) continue;
      if (!has_stop && !is_boundary(text[end - 1], at_or_end(text, end))) continue;
      result.append(text, copied, start - copied).append(words);
      copied = end;
    }
    if (copied > 0) text = result.append(text, copied);
  }
  return text;
}

}  // namespace tandem
