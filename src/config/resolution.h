// A Config while the layers are laid upon it, with the memory of who said what.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/entry.h"
#include "config/names.h"
#include "config/resolve.h"

namespace tandem {

class Resolution {
 public:
  Resolution();

  // Lays entries on top, in order. Throws Error(config) for an unknown name or an unfit value.
  void apply(const std::vector<Entry>& entries);
  // `~name`: back to the default.
  void remove(const std::string& name, const std::string& place);
  void notice(const std::string& line);

  // Checks that no setting has two values under two names. The last call.
  Resolved finish();

 private:
  // What a person gave a setting under one of its names; the latest under that name.
  struct Given {
    std::string name;
    Value value;
    Source::Layer layer;
    std::string place;
  };

  void apply_one(const Match& match, const Entry& entry);
  void remember(const Match& match, const Entry& entry, const Value& value);

  Resolved out_;
  std::map<const Setting*, std::vector<Given>> given_;
};

}  // namespace tandem
