#include "observe/report_html.h"

#include <fmt/format.h>

#include <cstdint>

namespace tandem {
namespace {

// Bytes of the UTF-8 character at the start of `text`; 0 when there is none.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (length < 3) return length;
  const bool too_long = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool beyond = (first == 0xED && byte(1) >= 0xA0) || (first == 0xF4 && byte(1) >= 0x90);
  return too_long || beyond ? 0 : length;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = character_length(text);
    const char c = text.front();
    const bool control = static_cast<uint8_t>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
    if (length == 0 || control || c == '\x7F') {
      out += "\xEF\xBF\xBD";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t start = 0; start < bytes.size(); start += 3) {
    uint32_t three = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - start);
    for (size_t i = 0; i < 3; ++i)
      three = three << 8 | (i < count ? static_cast<uint8_t>(bytes[start + i]) : 0U);
    for (size_t i = 0; i < 4; ++i) out += i <= count ? digits[three >> (18 - 6 * i) & 0x3F] : '=';
  }
  return out;
}

std::string tiles_html(const std::vector<Tile>& tiles) {
  std::string html;
  for (const Tile& tile : tiles) {
    html += fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n",
                        html_escaped(tile.value), html_escaped(tile.name));
  }
  return html.empty() ? "" : "<div class=\"tiles\">\n" + html + "</div>\n";
}

std::string table_html(const std::vector<std::vector<std::string>>& rows) {
  if (rows.size() < 2) return "";
  std::string html = "<div class=\"wide\"><table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const char* cell = i == 0 ? "th" : "td";
    html += "<tr>";
    for (const std::string& text : rows[i])
      html += fmt::format("<{}>{}</{}>", cell, html_escaped(text), cell);
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string section_html(std::string_view id, std::string_view title, const std::string& inner) {
  if (inner.empty()) return "";
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, inner);
}

std::string page_html(const ReportPage& page) {
  // The policy lets the page run its own script and show what is embedded, and reach nothing else.
  return fmt::format(
      R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{0}</title>
<style>{1}</style>
</head>
<body>
<header><h1>{0}</h1><p class="state {2}">{3}</p></header>
<main>
{4}</main>
<script type="application/json" id="charts">{5}</script>
<script>{6}</script>
</body>
</html>
)",
      html_escaped(page.title), report_style, page.state, html_escaped(page.state_words), page.body,
      page.charts_json, report_script);
}

}  // namespace tandem
