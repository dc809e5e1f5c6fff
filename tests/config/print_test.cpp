#include <limits>
#include <random>

#include "config/check.h"
#include "config_test.h"

namespace tandem {

namespace {

std::string random_text(std::mt19937_64& random) {
  static const std::vector<std::string> pieces = {
      "a",  "Z",  "0",  "1e3", " ", ":",    "#",    " #",     "'",      "\"",    "\\",
      "\n", "\t", "\r", "-",   "[", "]",    "{",    "}",      ",",      "&",     "*",
      "!",  "|",  ">",  "%",   "@", "`",    "~",    "null",   "on",     "/",     "..",
      "=",  "?",  "é",  "音",  "🎯", "\x01", "\x7f", "\u0085", "\u2028", "\ufeff"};
  std::string out;
  for (size_t i = random() % 12; i > 0; --i) out += pieces[random() % pieces.size()];
  return out;
}

Value random_value(const Setting& setting, std::mt19937_64& random) {
  if (setting.nullable && random() % 3 == 0) return Value();
  if (!setting.choices.empty()) return Value(setting.choices[random() % setting.choices.size()]);
  switch (setting.type) {
    case Type::boolean: return Value(random() % 2 == 0);
    case Type::integer: {
      const double max = std::min(setting.range->max, 9e18);
      const auto low = static_cast<int64_t>(setting.range->min);
      return Value(std::uniform_int_distribution<int64_t>(low, static_cast<int64_t>(max))(random));
    }
    case Type::number: {
      const double low = std::nextafter(setting.range->min, setting.range->max);
      return Value(std::uniform_real_distribution<double>(low, setting.range->max)(random));
    }
    case Type::text: return Value(random_text(random));
  }
  return Value();
}

}  // namespace

TEST(PrintConfig, LoadsAgainToTheSame) {
  TestFolder folder;
  std::mt19937_64 random(20);
  for (int round = 0; round < 150; ++round) {
    Resolved before;
    for (const Setting& setting : settings()) {
      setting.set(before.config, checked_value(setting, random_value(setting, random), "test"));
      before.sources[setting.key].where = random_text(random);
    }
    const std::string text = print_config(before);
    const Config after = Config::from_yaml(folder.write("c.yaml", text));
    expect_equal(before.config, after);
    if (HasFailure()) FAIL() << text;
  }
}

TEST(PrintConfig, SaysWhereEachValueComesFrom) {
  const Resolved resolved = resolve({.flags = {{"--batch-size", "32"}},
                                     .overrides = {"visible_gpus=0,1"},
                                     .use_environment = false});
  const std::string text = print_config(resolved);
  EXPECT_NE(text.find("\ndata:\n"), std::string::npos);
  EXPECT_NE(text.find("\n  batch_size: 32  # --batch-size\n"), std::string::npos);
  EXPECT_NE(text.find("\n  visible_gpus: \"0,1\"  # visible_gpus=0,1\n"), std::string::npos);
  EXPECT_NE(text.find("\n  learning_rate: null  # default\n"), std::string::npos);
  EXPECT_NE(text.find("\n  collective_timeout: 60.0  # default\n"), std::string::npos);
}

TEST(PrintConfig, OfDefaultsLoadsWithoutNotices) {
  TestFolder folder;
  const std::string path = folder.write("c.yaml", print_config(resolve_overrides({})));
  EXPECT_TRUE(resolve_file(path).notices.empty());
}

TEST(SettingsPage, HasARowForEverySetting) {
  const std::string page = settings_markdown();
  for (const Setting& setting : settings())
    EXPECT_NE(page.find("\n| `" + setting.key + "` | "), std::string::npos) << setting.key;
  EXPECT_NE(page.find("\n| `data.buffer_size` | a whole number from 1 to 100000 | `50` | "
                      "`--buffer-size` | `TANDEM_DATA_BUFFER_SIZE` | `data.pipeline_buffer_size`, "
                      "`data.prefetch_buffer_size` | train, bench | "),
            std::string::npos);
}

}  // namespace tandem
