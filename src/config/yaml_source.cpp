#include "config/yaml_source.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "config/names.h"
#include "tandem/error.h"

namespace tandem {

namespace {

// A settings file has a few thousand bytes; more is a mistaken path, and YAML parsers are slow.
constexpr std::streamsize largest_file = 1 << 20;

Error bad_file(const std::string& sentence) { return Error(ErrorKind::config, sentence); }

std::string read_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorKind::io, fmt::format("`{}` is a folder, not a settings file", path.string()));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorKind::io, fmt::format("cannot open the settings file `{}`: {}", path.string(),
                                           std::strerror(errno ? errno : EIO)));
  }
  std::string text(largest_file + 1, '\0');
  file.read(text.data(), largest_file + 1);
  if (file.bad()) throw Error(ErrorKind::io, fmt::format("cannot read `{}`", path.string()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > largest_file)
    throw bad_file(fmt::format("`{}` is over 1 MiB, too large for a settings file", path.string()));
  if (!is_plain_utf8(text))
    throw bad_file(fmt::format("`{}` is not a settings file: it is not UTF-8 text", path.string()));
  return text;
}

// "`config.yaml:3` is not valid YAML: …"
Error broken(const std::string& path, const std::string& text, const YAML::Exception& error) {
  // The end mark that `load` adds is on no line of the file.
  const auto lines = std::count(text.begin(), text.end(), '\n') + !text.ends_with('\n');
  const auto line = std::min<int64_t>(error.mark.line + 1, lines);
  const bool unclosed = error.msg == YAML::ErrorMsg::DOC_IN_SCALAR;
  return bad_file(fmt::format("`{}:{}` is not valid YAML: {}", path, line,
                              unclosed ? "a quote is not closed" : shown(error.msg)));
}

YAML::Node load(const std::string& path) {
  const std::string text = read_text(path);
  try {
    // yaml-cpp lets a quote that never closes swallow the rest of a file that ends in a newline;
    // the mark for the end of a document is not allowed inside quotes.
    const std::vector<YAML::Node> documents = YAML::LoadAll(text + "\n...\n");
    if (documents.size() > 1) {
      throw bad_file(
          fmt::format("`{}` holds {} YAML documents; expected one", path, documents.size()));
    }
    return documents.empty() ? YAML::Node() : documents[0];
  } catch (const YAML::Exception& error) {
    throw broken(path, text, error);
  }
}

class SettingsReader {
 public:
  SettingsReader(const std::filesystem::path& path, const YamlOptions& options)
      : path_(path.string()), options_(options) {}

  YamlSettings read() {
    const YAML::Node root = load(path_);
    if (root.IsMap()) {
      read_map(root, options_.section);
    } else if (!root.IsNull()) {
      throw bad_file(fmt::format("`{}` holds {}; expected settings as `name: value`", path_,
                                 root.IsSequence() ? "a list" : "a single value"));
    }
    return std::move(out_);
  }

 private:
  std::string place(const YAML::Node& node) const {
    return fmt::format("{}:{}", path_, node.Mark().line + 1);
  }

  void read_map(const YAML::Node& map, const std::string& prefix) {
    std::map<std::string, std::string> seen;
    for (const auto& pair : map) {
      const std::string here = place(pair.first);
      if (!pair.first.IsScalar())
        throw bad_file(fmt::format("a key that is not a plain name ({})", here));
      const std::string key = pair.first.Scalar();
      const auto [first, fresh] = seen.emplace(key, here);
      if (!fresh)
        throw bad_file(
            fmt::format("`{}` is given twice: {} and {}", shown(key), first->second, here));
      if (key == "<<")
        throw bad_file(fmt::format("merge keys (`<<`) are not read ({}); write the values", here));
      if (key == "defaults" && prefix.empty() && options_.with_defaults) {
        read_defaults(pair.second, here);
      } else {
        read_pair(prefix.empty() ? key : prefix + "." + key, pair.second, here);
      }
    }
  }

  // Recursion ends by itself: only prefixes of known names are entered.
  void read_pair(const std::string& name, const YAML::Node& node, const std::string& here) {
    const bool setting = !find_names(name).empty();
    if (!setting && !is_name_prefix(name)) throw unknown_name(name, here);
    if (setting) {
      Source source = options_.source;
      if (source.where.empty()) source.where = here;
      out_.entries.push_back({name, to_value(node, name, here), source, here});
    } else if (node.IsMap()) {
      read_map(node, name);
    } else if (!node.IsNull()) {
      throw bad_file(fmt::format(
          "`{}` is a section; expected settings as `name: value` below it ({})", name, here));
    }
  }

  Value to_value(const YAML::Node& node, const std::string& name, const std::string& here) const {
    if (node.IsScalar()) return scalar(node);
    if (node.IsNull()) return Value();
    Value::List list;
    for (const YAML::Node& item : node) {
      if (!node.IsSequence() || !(item.IsScalar() || item.IsNull()))
        throw bad_file(fmt::format("`{}` must be a single value or a plain list ({})", name, here));
      list.push_back(item.IsNull() ? Value() : scalar(item));
    }
    if (node.IsMap())
      throw bad_file(fmt::format("`{}` must be a single value or a plain list ({})", name, here));
    return list;
  }

  static Value scalar(const YAML::Node& node) {
    // yaml-cpp tags quoted and block scalars `!`, plain ones `?`.
    const bool text = node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str";
    return text ? Value(node.Scalar()) : parse_value(node.Scalar());
  }

  void read_defaults(const YAML::Node& list, const std::string& here) {
    const auto malformed = [&] {
      return bad_file(fmt::format("`defaults` must be a list of `- group: choice` ({})", here));
    };
    if (!list.IsSequence()) throw malformed();
    for (const YAML::Node& item : list) {
      if (item.IsScalar() && item.Scalar() == "_self_")
        continue;  // Hydra's habit; always last here
      if (!item.IsMap() || item.size() != 1) throw malformed();
      const auto pair = *item.begin();
      if (!pair.first.IsScalar() || !pair.second.IsScalar()) throw malformed();
      out_.defaults.push_back({pair.first.Scalar(), pair.second.Scalar(), place(pair.first)});
    }
  }

  std::string path_;
  const YamlOptions& options_;
  YamlSettings out_;
};

}  // namespace

YamlSettings read_settings_file(const std::filesystem::path& path, const YamlOptions& options) {
  try {
    return SettingsReader(path, options).read();
  } catch (const YAML::Exception& error) {
    throw bad_file(fmt::format("`{}` cannot be read as settings: {}", path.string(), error.msg));
  }
}

}  // namespace tandem
