// Chinese numbers in Han characters, as the cleaner of coqui-tts 0.28 writes them.
#include <algorithm>
#include <array>

#include "text/clean_characters.h"
#include "text/romanise.h"

namespace tandem {

namespace {

constexpr char32_t digits[] = {U'零', U'一', U'二', U'三', U'四',
                               U'五', U'六', U'七', U'八', U'九'};

// What is counted: a number before it is read as a number however long it is.
constexpr std::u32string_view counted =
    U"万丈世丘丝两个丸亿代令件伏位元冬出刀分刻勺匹千升单卮厘双叠口只合名周啖回场块坡堂堆墙壳壶夏夜"
    U"天头季客家"
    U"寸对寻尺尾层山岁岭常幢年座张忽户手扎打担挑捆撮支斗斛斤日旬时春曲更月本条杯板枝根桶棵毛毫江泡"
    U"溪炮煲片瓶"
    U"百盆盏盒盘石砣碗碟秋秒程窠笼管箩箱篮簋粒纪线罐网罗群脚腔袋袭角课贯贴跳身辆辈道里针钟钧钱钵铢"
    U"铺锅锱阙队"
    U"阵面页顶颗首";
// Money, and what money is counted in: read before telephone numbers are looked for.
constexpr std::u32string_view money = U"万亿元分千块毛百角";

// Each becomes a comma.
constexpr std::u32string_view marks =
    U"!\"#$%&'()*+-./"
    U":;<=>?@[\\]^_`{|}~·–—‘’‛“”„‟…‧、。〃〈〉《》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿﹏"
    U"！＂＃＄％＆＇（）＊＋，－／：；＜＝＞？＠［＼］＾＿｀｛｜｝～｟｠｡｢｣､";

std::u32string by_digits(std::u32string_view number) {
  std::u32string words;
  for (const char32_t c : number) words.push_back(digits[c - U'0']);
  return words;
}

// A whole number with its leading zeros: 02 is 零二, 00 is nothing.
std::u32string cardinal(std::u32string_view number) {
  if (number == U"0") return U"零";
  const size_t zeros = std::min(number.find_first_not_of(U'0'), number.size());
  const std::u32string_view rest = number.substr(zeros);
  constexpr std::u32string_view places[] = {U"", U"十", U"百", U"千"};
  constexpr std::u32string_view groups[] = {U"", U"万", U"亿", U"兆", U"京", U"垓", U"秭", U"穰"};
  std::u32string words;
  bool pending_zero = zeros > 0;
  bool in_group = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    const size_t place = rest.size() - 1 - i;
    if (rest[i] == U'0') {
      pending_zero = true;
    } else {
      if (pending_zero) words.push_back(U'零');
      pending_zero = false;
      words.push_back(digits[rest[i] - U'0']);
      words += places[place % 4];
      in_group = true;
    }
    if (place % 4 == 0 && in_group) {
      words += groups[std::min(place / 4, std::size(groups) - 1)];
      in_group = false;
      if (place > 0) pending_zero = false;
    }
  }
  if (zeros == 0 && words.starts_with(U"一十")) words.erase(0, 1);
  // Two of something is 两, but not after ten or zero.
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const bool unit =
        std::u32string_view(U"百千万亿兆京垓").find(words[i + 1]) != std::u32string_view::npos;
    const bool after = i > 0 && (words[i - 1] == U'十' || words[i - 1] == U'零');
    if (words[i] == U'二' && unit && !after) words[i] = U'两';
  }
  return words;
}

struct Number {
  size_t whole_end, end;  // `end` is after the fraction
};

Number number_at(std::u32string_view text, size_t at) {
  size_t whole = at;
  while (is_ascii_digit(at_or_end(text, whole))) ++whole;
  size_t end = whole;
  if (at_or_end(text, whole) == U'.' && is_ascii_digit(at_or_end(text, whole + 1))) {
    end = whole + 1;
    while (is_ascii_digit(at_or_end(text, end))) ++end;
  }
  return {whole, end};
}

std::u32string cardinal_or_decimal(std::u32string_view text, size_t at, const Number& number) {
  std::u32string words = cardinal(text.substr(at, number.whole_end - at));
  if (number.end == number.whole_end) return words;
  if (words.empty()) words = U"零";
  return words + U"点" +
         by_digits(text.substr(number.whole_end + 1, number.end - number.whole_end - 1));
}

bool is_one_of(char32_t c, std::u32string_view set) {
  return c != 0 && set.find(c) != std::u32string_view::npos;
}

// The unit that follows, after 多, 余 or 几.
char32_t unit_after(std::u32string_view text, size_t at) {
  if (is_one_of(at_or_end(text, at), U"多余几")) ++at;
  return at_or_end(text, at);
}

bool is_year(std::u32string_view number) {
  if (number.size() == 2) return number[0] == U'8' || number[0] == U'9' || number[0] == U'0';
  return number.size() == 4 && (number.starts_with(U"19") || number.starts_with(U"20"));
}

// 021-12345678: an area code and seven or eight digits; the end of it, or 0.
size_t telephone_end(std::u32string_view text, size_t at, size_t whole_end) {
  const std::u32string_view area = text.substr(at, whole_end - at);
  const bool three =
      area.size() == 3 && area[0] == U'0' &&
      (area.substr(1) == U"10" || (area[1] == U'2' && area[2] >= U'1' && area[2] <= U'3'));
  const bool four = area.size() == 4 && area[0] == U'0' && area[1] >= U'3';
  if ((!three && !four) || at_or_end(text, whole_end) != U'-') return 0;
  size_t end = whole_end + 1;
  while (is_ascii_digit(at_or_end(text, end))) ++end;
  const size_t count = end - whole_end - 1;
  return (count == 7 || count == 8) && text[whole_end + 1] != U'0' ? end : 0;
}

struct Read {
  std::u32string words;
  size_t end;
};

Read read_number(std::u32string_view text, size_t at, CleanStyle style) {
  const Number number = number_at(text, at);
  const std::u32string_view whole = text.substr(at, number.whole_end - at);
  const bool is_whole = number.end == number.whole_end;
  const char32_t next = at_or_end(text, number.end);
  if (is_whole && next == U'年' && is_year(whole)) return {by_digits(whole), number.end};
  const char32_t unit = unit_after(text, number.end);
  if (is_one_of(unit, money)) return {cardinal_or_decimal(text, at, number), number.end};
  if (is_whole) {
    if (const size_t end = telephone_end(text, at, number.end); end > 0) {
      return {by_digits(whole) + by_digits(text.substr(number.end + 1, end - number.end - 1)), end};
    }
    const bool telephone = (whole.size() == 7 || whole.size() == 8) && whole[0] != U'0';
    if (telephone && style == CleanStyle::coqui) return {by_digits(whole), number.end};
    if (next == U'/' && is_ascii_digit(at_or_end(text, number.end + 1))) {
      const Number below = number_at(text, number.end + 1);
      const std::u32string_view digits_below =
          text.substr(number.end + 1, below.whole_end - number.end - 1);
      return {cardinal(digits_below) + U"分之" + cardinal(whole), below.whole_end};
    }
  }
  if (next == U'%' || next == U'％') {
    return {U"百分之" + cardinal_or_decimal(text, at, number), number.end + 1};
  }
  if (is_one_of(unit, counted)) return {cardinal_or_decimal(text, at, number), number.end};
  // Four digits and more with nothing counted are a code or a year; then a point is no decimal
  // point.
  const size_t limit = style == CleanStyle::coqui ? 4 : 9;
  const bool year = style == CleanStyle::best && whole.size() == 4 && is_year(whole);
  if (whole.size() >= limit || year) return {by_digits(whole), number.whole_end};
  if (number.end - number.whole_end > 4 && style == CleanStyle::coqui) {
    return {cardinal(whole), number.whole_end};
  }
  return {cardinal_or_decimal(text, at, number), number.end};
}

bool is_latin(char32_t c) { return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z'); }

// "b2b" keeps its digit. Where words of letters share one, the first has it, as in Coqui.
std::u32string with_latin_two(std::u32string_view text) {
  std::u32string result(text);
  size_t used = 0;
  for (size_t i = 1; i + 1 < result.size(); ++i) {
    if (result[i] != U'二' || i <= used) continue;
    if (!is_latin(result[i - 1]) || !is_latin(result[i + 1])) continue;
    result[i] = U'2';
    used = i + 1;
    while (used < result.size() && is_latin(result[used])) ++used;
  }
  return result;
}

// "$20" is 20美元.
std::u32string signs_after(std::u32string_view text) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = text[at];
    const std::u32string_view name = c == U'$'   ? U"美元"
                                     : c == U'£' ? U"英镑"
                                     : c == U'€' ? U"欧元"
                                     : c == U'¥' ? U"元"
                                                 : U"";
    if (name.empty()) {
      result.push_back(text[at++]);
      continue;
    }
    if (is_ascii_digit(at_or_end(text, at + 1))) {
      const size_t end = number_at(text, at + 1).end;
      result.append(text.substr(at + 1, end - at - 1)).append(name);
      at = end;
    } else {
      result.append(name);
      ++at;
    }
  }
  return result;
}

}  // namespace

std::u32string chinese_numbers(std::u32string_view text, CleanStyle style) {
  std::u32string prepared(text);
  for (char32_t& c : prepared) {
    if (c >= U'０' && c <= U'９') c = U'0' + (c - U'０');
  }
  if (style == CleanStyle::best) prepared = signs_after(prepared);
  const std::u32string_view source = prepared;
  std::u32string result;
  for (size_t at = 0; at < source.size();) {
    if (!is_ascii_digit(source[at])) {
      result.push_back(source[at++]);
      continue;
    }
    Read read = read_number(source, at, style);
    result += read.words;
    at = read.end;
  }
  result = with_latin_two(result);
  if (style == CleanStyle::best) return result;
  for (char32_t& c : result) {
    if (c >= 0x80 ? marks.find(c) != std::u32string_view::npos
                  : c > U' ' && c != U',' && !is_ascii_digit(c) && !is_latin(c) && c < 0x7f) {
      c = U',';
    }
  }
  return result;
}

}  // namespace tandem
