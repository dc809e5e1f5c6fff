// Figures in the documentation name the command that made them: those commands are still
// understood.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "support/program.h"

namespace tandem {
namespace {

struct DocumentedLine {
  std::string where;               // "docs/training.md:64"
  std::vector<std::string> words;  // without `tandem`
};

// Words of a shell command up to a comment, a pipe or the backtick that ends it.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool begun = false;
  const auto end = [&] {
    if (begun) words.push_back(word);
    word.clear();
    begun = false;
  };
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      begun = true;
    } else if (c == '`' || c == '|' || c == ';' || c == '>' || (c == '#' && !begun)) {
      break;
    } else if (c == ' ') {
      end();
    } else {
      word += c;
      begun = true;
    }
  }
  end();
  return words;
}

void read_lines(const std::filesystem::path& file, std::vector<DocumentedLine>& lines) {
  static const std::string start = "tandem bench ";
  std::ifstream text(file);
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    for (size_t at = 0; (at = line.find(start, at)) != std::string::npos; at += start.size())
      lines.push_back({file.filename().string() + ":" + std::to_string(number),
                       words_of(line.substr(at + std::string("tandem ").size()))});
  }
}

std::vector<DocumentedLine> documented_lines() {
  const std::filesystem::path root = TANDEM_SOURCE_DIR;
  std::vector<std::filesystem::path> files{root / "README.md", root / "bench" / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<DocumentedLine> lines;
  for (const auto& file : files) read_lines(file, lines);
  return lines;
}

}  // namespace

TEST(BenchLines, CutACommandOutOfATextAsAShellWould) {
  EXPECT_EQ(words_of("bench data --data 'a b' # why"),
            (std::vector<std::string>{"bench", "data", "--data", "a b"}));
  EXPECT_EQ(words_of("bench train --batches 16` | 160,000 |"),
            (std::vector<std::string>{"bench", "train", "--batches", "16"}));
}

// A line with `…` is about a part of a command, and one word alone is a benchmark's name: those
// only have to name a benchmark.
TEST(BenchLines, EveryCommandInTheDocumentationIsUnderstood) {
  const ProgramRun list = run_program({"bench", "--list"});
  std::set<std::vector<std::string>> seen;
  size_t commands = 0;
  for (DocumentedLine& line : documented_lines()) {
    std::vector<std::string> words = line.words;
    const bool whole = std::ranges::find(words, "…") == words.end() && words.size() > 2;
    if (!seen.insert(words).second) continue;
    if (!whole) {
      const std::string name = words.size() > 1 ? words[1] : "";
      const bool known = ("\n" + list.out).find("\n" + name + " ") != std::string::npos;
      EXPECT_TRUE(known || name == "--list" || name == "…")
          << line.where << ": there is no benchmark `" << name << "`";
      continue;
    }
    ++commands;
    words.push_back("--dry-run");
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.code, 0) << line.where << ": " << run.err;
  }
  EXPECT_GE(commands, 4u);  // README.md, docs/data.md, docs/speech.md, docs/training.md
}

}  // namespace tandem
