#include "config/schema.h"

#include <algorithm>
#include <iterator>

#include "config/schema_rows.h"
#include "util/text.h"

namespace tandem {

bool Range::holds(double number) const {
  // Written so that NaN is out.
  return (above_min ? number > min : number >= min) && number <= max;
}

std::string Setting::section() const { return key.substr(0, key.find('.')); }
std::string Setting::name() const { return key.substr(key.rfind('.') + 1); }

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = [] {
    std::vector<Setting> out;
    for (auto* part : {model_settings, data_settings, training_settings, generation_settings,
                       paths_settings, observe_settings}) {
      std::vector<Setting> rows = part();
      std::move(rows.begin(), rows.end(), std::back_inserter(out));
    }
    return out;
  }();
  return all;
}

const std::vector<std::string>& sections() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out;
    for (const Setting& setting : settings()) {
      if (out.empty() || out.back() != setting.section()) out.push_back(setting.section());
    }
    return out;
  }();
  return all;
}

namespace {
const Setting* find_by(std::string Setting::*member, std::string_view text) {
  const auto& all = settings();
  const auto same = [&](const Setting& setting) { return setting.*member == text; };
  const auto found = std::find_if(all.begin(), all.end(), same);
  return found == all.end() || text.empty() ? nullptr : &*found;
}
}  // namespace

const Setting* find_by_key(std::string_view key) { return find_by(&Setting::key, key); }
const Setting* find_by_flag(std::string_view flag) { return find_by(&Setting::flag, flag); }

std::string environment_name(std::string_view key) {
  std::string out = "TANDEM_";
  for (const char c : key) {
    out += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return out;
}

std::string reader_names(uint32_t readers) {
  static const std::pair<Reader, const char*> names[] = {
      {read_by_train, "train"},           {read_by_generate, "generate"},
      {read_by_synthesize, "synthesize"}, {read_by_prepare, "prepare"},
      {read_by_diagnose, "diagnose"},     {read_by_bench, "bench"},
  };
  std::vector<std::string> out;
  for (const auto& [reader, name] : names) {
    if (readers & reader) out.emplace_back(name);
  }
  return join(out, ", ");
}

}  // namespace tandem
