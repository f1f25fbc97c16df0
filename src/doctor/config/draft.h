// A job while its sources are read. Facts that need several keys or files wait here until all are known.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "doctor/config/job.h"
#include "doctor/config/setting.h"

namespace headroom::doctor {

struct Draft {
  Job job;
  // Texts of keys that have no field of their own, by name. take_extras() copies those that are used in computations
  // into the job.
  std::map<std::string, std::string> extras;
  // Values whose meaning depends on other keys, by name ("hf.bf16"); a later source overrides.
  std::map<std::string, Setting> facts;
  // Local files that the sources name ("deepspeed": ds_config.json): key in the user's spelling and path.
  std::vector<std::pair<Origin, std::string>> references;

  // Sets a field and records its origin. Notes a conflict when another key set another value.
  template <typename T>
  void set(std::optional<T>& field, T value, const std::string& name, const Origin& origin) {
    note_origin(name, origin, field && *field != value);
    field = std::move(value);
  }
  void set(std::string& field, std::string value, const std::string& name, const Origin& origin) {
    note_origin(name, origin, !field.empty() && field != value);
    field = std::move(value);
  }
  void set_extra(const std::string& name, std::string value, const Origin& origin) {
    set(extras[name], std::move(value), "extras." + name, origin);
  }
  // Sets a field only if no key has set it: for what one key implies for another field.
  template <typename T>
  void imply(std::optional<T>& field, T value, const std::string& name, const Origin& origin) {
    if (!field) set(field, std::move(value), name, origin);
  }

  const Setting* fact(const std::string& name) const;
  // The truth value of a fact; nullopt when absent or not a truth value.
  std::optional<bool> fact_truth(const std::string& name) const;
  std::string fact_text(const std::string& name) const;
  std::optional<int64_t> fact_number(const std::string& name) const;
  void take_extras();
  // The LoRA settings, created on first use.
  LoraSettings& lora();
  // Notes that a name or value is outdated or misspelt. `text` says what is right, and since when.
  void correct(const Origin& origin, std::string text, const std::string& value);

 private:
  void note_origin(const std::string& name, const Origin& origin, bool changed);
};

}  // namespace headroom::doctor
