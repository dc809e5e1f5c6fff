#include "config/schema.h"

#include <regex>
#include <set>
#include <sstream>

#include "config/check.h"
#include "config_test.h"
#include "config/names.h"

namespace tandem {

namespace {

// Another value than the default that the setting accepts.
Value other_value(const Setting& setting) {
  const Value& now = setting.default_value;
  if (!setting.choices.empty()) {
    const bool first = now == Value(setting.choices[0]);
    return Value(setting.choices[first ? 1 : 0]);
  }
  switch (setting.type) {
    case Type::boolean: return Value(!*now.as<bool>());
    case Type::integer: {
      const int64_t least =
          setting.range ? static_cast<int64_t>(std::max(1.0, setting.range->min)) : 1;
      return now == Value(least) ? Value(least + 1) : Value(least);
    }
    case Type::number: {
      const bool fits = !setting.range || setting.range->holds(0.75);
      return Value(fits ? 0.75 : setting.range->max - 0.75);
    }
    case Type::text: return Value("another");
  }
  return Value();
}

std::string config_header() {
  std::ifstream file(TANDEM_SOURCE_DIR "/include/tandem/config.h");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST(Schema, EveryMemberOfConfigHasARow) {
  const std::string header = config_header();
  const std::regex section_pattern(R"(\n  (\w+Config) (\w+)( = \{\})?;)");
  size_t members = 0;
  for (std::sregex_iterator section(header.begin(), header.end(), section_pattern), end;
       section != end; ++section) {
    const size_t start = header.find("struct " + (*section)[1].str() + " {");
    ASSERT_NE(start, std::string::npos);
    const std::string body = header.substr(start, header.find("\n};", start) - start);
    const std::regex member_pattern(R"(\n  [\w:<>]+\s+(\w+)( = [^;]*)?;)");
    // Of one declaration, `double beta1 = 0.9, beta2 = 0.96;`, the names behind the first.
    const std::regex more_pattern(R"(, (\w+) = )");
    const auto expect_row = [&](const std::string& name) {
      const std::string key = (*section)[2].str() + "." + name;
      EXPECT_NE(find_by_key(key), nullptr) << key;
      ++members;
    };
    for (std::sregex_iterator member(body.begin(), body.end(), member_pattern); member != end;
         ++member) {
      expect_row((*member)[1].str());
      const std::string whole = (*member)[0].str();
      for (std::sregex_iterator more(whole.begin(), whole.end(), more_pattern); more != end; ++more)
        expect_row((*more)[1].str());
    }
  }
  EXPECT_EQ(members, settings().size());
}

TEST(Schema, GetAndSetAgreeForEverySetting) {
  for (const Setting& setting : settings()) {
    Config config;
    EXPECT_EQ(setting.get(config), setting.default_value) << setting.key;
    const Value other = checked_value(setting, other_value(setting), "test");
    setting.set(config, other);
    EXPECT_EQ(setting.get(config), other) << setting.key;
    for (const Setting& rest : settings()) {
      if (&rest == &setting) continue;
      EXPECT_EQ(rest.get(config), rest.default_value) << setting.key;
    }
    setting.set(config, setting.default_value);
    EXPECT_EQ(setting.get(config), setting.default_value) << setting.key;
  }
}

TEST(Schema, DefaultsAreInRange) {
  EXPECT_NO_THROW(validate(Config{}));
  for (const Setting& setting : settings())
    EXPECT_EQ(checked_value(setting, setting.default_value, "test"), setting.default_value);
}

TEST(Schema, NoTwoSettingsShareAName) {
  std::set<std::string> names, flags, variables;
  for (const std::string& name : dotted_names()) EXPECT_TRUE(names.insert(name).second) << name;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(setting.flag.empty() || flags.insert(setting.flag).second) << setting.flag;
    EXPECT_TRUE(variables.insert(setting.env).second) << setting.env;
    EXPECT_FALSE(is_section(setting.name())) << setting.key;
  }
}

TEST(Schema, EverySettingExplainsItself) {
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(setting.help.ends_with(".")) << setting.key;
    EXPECT_FALSE(setting.range && setting.type == Type::boolean) << setting.key;
    EXPECT_TRUE(setting.choices.empty() || setting.type == Type::text) << setting.key;
    const bool number = setting.type == Type::integer || setting.type == Type::number;
    EXPECT_EQ(setting.range.has_value(), number) << setting.key;
  }
}

TEST(Schema, VariablesAreMadeFromKeys) {
  EXPECT_EQ(find_by_key("training.multi_gpu")->env, "TANDEM_TRAINING_MULTI_GPU");
}

TEST(Schema, EveryPromisedFlagExists) {
  for (const char* flag : {"--stage",
                           "--model-size",
                           "--batch-size",
                           "--num-workers",
                           "--buffer-size",
                           "--train-data",
                           "--val-data",
                           "--epochs",
                           "--max-steps",
                           "--learning-rate",
                           "--grad-accum",
                           "--multi-gpu",
                           "--visible-gpus",
                           "--data-gpu",
                           "--model-gpu",
                           "--model-start-delay",
                           "--optimization-level",
                           "--checkpoint-dir",
                           "--enable-memory-isolation",
                           "--data-gpu-memory",
                           "--model-gpu-memory",
                           "--seed",
                           "--precision"})
    EXPECT_NE(find_by_flag(flag), nullptr) << flag;
  EXPECT_EQ(find_by_flag(""), nullptr);
  EXPECT_EQ(find_by_flag("--seed")->key, "training.seed");
}

TEST(Schema, ReaderNames) {
  EXPECT_EQ(reader_names(read_by_train | read_by_diagnose), "train, diagnose");
  EXPECT_EQ(reader_names(0), "");
}

TEST(Validate, RefusesAConfigFilledWronglyInCpp) {
  Config config;
  config.data.batch_size = 0;
  EXPECT_EQ(sentence_of([&] { validate(config); }),
            "`data.batch_size` must be a whole number from 1 to 1000000, not `0` (set in C++).");
}

}  // namespace tandem
