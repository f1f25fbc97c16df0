// The snapshots of make_snapshots.py, and the true values for them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "doctor/snapshot/read_snapshot.h"
#include "formats/json.h"

namespace headroom::doctor {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/doctor_snapshot/data";
}

inline std::string golden_bytes(const std::string& name) {
  std::ifstream file(golden_folder() / (name + ".pickle"), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline Snapshot golden(const std::string& name) { return read_snapshot(golden_bytes(name), name + ".pickle"); }

inline Json golden_truth() { return read_json(golden_folder() / "truth.json"); }

inline std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  const Json truth = golden_truth();
  for (const auto& [name, value] : truth.items()) names.push_back(name);
  return names;
}

}  // namespace headroom::doctor
