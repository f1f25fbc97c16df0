// The measured jobs of benchmarks/doctor_data/*.tsv: name, source, statistic, bytes, model, and the job's fields.
#pragma once

#include <string>
#include <vector>

#include "doctor/model/estimate.h"

namespace headroom::doctor {

struct MeasuredCase {
  std::string source, name;
  std::string statistic;  // nvidia_smi, reserved, allocated, resident
  double bytes = 0;
  std::string model;
  Job job;
  std::optional<Gpu> gpu;
  Software software;
  // Fitted constants were chosen on the cases whose name has an even FNV-1a hash; the others test them.
  bool fit() const;
};

// Tab-separated: source, name, statistic, bytes, model, then key=value pairs separated by blanks. '#' starts a comment.
// Throws Error(format) for a broken line.
std::vector<MeasuredCase> read_cases(const std::string& path);

// What the estimate says about the statistic that was measured.
double predicted_bytes(const MeasuredCase& measured, const Estimate& estimate);

}  // namespace headroom::doctor
