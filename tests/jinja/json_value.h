// Converts JSON to template values, for tests.
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace headroom::jinja {

inline Value value_of(Budget& budget, const nlohmann::ordered_json& json) {
  if (json.is_null()) return Value();
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return make_text(budget, json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(value_of(budget, item));
    return make_list(budget, ListKind::list, std::move(items));
  }
  auto dict = std::make_shared<Dict>(budget);
  for (const auto& [key, item] : json.items()) dict->set(make_text(budget, key), value_of(budget, item));
  return Value(DictRef(std::move(dict)));
}

// Thursday, 5 March 2026, 14:07:09.
inline std::tm golden_time() {
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 2;
  now.tm_mday = 5;
  now.tm_hour = 14;
  now.tm_min = 7;
  now.tm_sec = 9;
  now.tm_wday = 4;
  now.tm_yday = 63;
  return now;
}

}  // namespace headroom::jinja
