// One folder of tests/oracle: a tiny model, its batch, and PyTorch's results.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/training_request.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "weights/model_files.h"

namespace headroom::test {

inline std::vector<float> read_floats(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  if (!tensor) return {};
  std::vector<float> values(static_cast<size_t>(tensor->elements()));
  file.read(*tensor, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

struct GoldenCase {
  std::filesystem::path folder;
  ModelFiles model;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<int32_t>> labels;
  std::vector<std::vector<int32_t>> starts;  // of packed rows (HostPort::next_segments); empty: not packed
  std::vector<int64_t> lengths;              // of the rows before their padding; empty: no padding
  std::vector<std::vector<int32_t>> types;   // of the tokens; empty: all 0
  double loss = 0;
  int64_t targets = 0;
  double gradient_norm = 0;

  static GoldenCase open(const std::string& name) {
    GoldenCase golden;
    golden.folder = std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/oracle" / name;
    golden.model = open_model(golden.folder / "model");
    const Json batch = read_json(golden.folder / "batch.json");
    golden.ids = batch.at("input_ids").get<std::vector<std::vector<int32_t>>>();
    golden.labels = batch.at("labels").get<std::vector<std::vector<int32_t>>>();
    const Json expected = read_json(golden.folder / "expected.json");
    golden.loss = expected.at("loss").get<double>();
    golden.targets = expected.at("targets").get<int64_t>();
    golden.gradient_norm = expected.at("gradient_norm").get<double>();
    return golden;
  }

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  int64_t row_length() const { return static_cast<int64_t>(ids.front().size()); }

  std::map<std::string, std::vector<float>> gradients() const {
    const SafetensorsFile file = SafetensorsFile::open(folder / "expected_grads.safetensors");
    std::map<std::string, std::vector<float>> out;
    for (const auto& [name, tensor] : file.tensors()) out[name] = read_floats(file, name);
    return out;
  }
};

inline double l2_norm(const std::vector<float>& values) {
  double sum = 0;
  for (float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

inline double l2_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return std::sqrt(sum);
}

}  // namespace headroom::test
