// Cleans lines for tests/parity/compare_clean.py: reads {"language", "style", "text"} as JSON
// lines, writes {"text"} or {"error"} for each.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tandem/error.h"
#include "text/clean.h"

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const nlohmann::json request = nlohmann::json::parse(line);
    nlohmann::json answer;
    try {
      const auto style =
          request.at("style") == "coqui" ? tandem::CleanStyle::coqui : tandem::CleanStyle::best;
      answer["text"] = tandem::clean_text(request.at("text").get<std::string>(),
                                          request.at("language").get<std::string>(), style);
    } catch (const tandem::Error& error) {
      answer["error"] = error.what();
    }
    std::cout << answer.dump() << '\n';
  }
}
