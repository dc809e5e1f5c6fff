// Pieces of the report's page. Everything that comes from outside passes through `html_escaped`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// Fit for text and for attributes in double quotes; what is no UTF-8 becomes the replacement
// character.
std::string html_escaped(std::string_view text);

std::string base64(std::string_view bytes);

struct Tile {
  std::string value, name;
};
std::string tiles_html(const std::vector<Tile>& tiles);

// The first row names the columns.
std::string table_html(const std::vector<std::vector<std::string>>& rows);

// <section> with a heading; "" when there is nothing in it.
std::string section_html(std::string_view id, std::string_view title, const std::string& inner);

// The whole document, complete in itself: no address outside of it is ever asked for anything.
struct ReportPage {
  std::string title, state;  // state: a word that becomes a class: running, finished, …
  std::string state_words;
  std::string body;         // HTML
  std::string charts_json;  // fit for a script element
};
std::string page_html(const ReportPage& page);

// What the page looks like and what draws its charts.
extern const char* const report_style;
extern const char* const report_script;

}  // namespace tandem
