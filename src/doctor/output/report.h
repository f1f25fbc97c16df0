// What doctor answers with, whole; the screen, JSON, HTML and the bundle are views of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// What headroom itself would need for the same job.
struct HeadroomAnswer {
  std::string command;
  std::optional<int64_t> minimum_bytes;  // absent where the model's config.json is not at hand
};

struct Report {
  Case patient;
  Diagnosis diagnosis;
  HeadroomAnswer headroom;
  std::string system;                // "TRL", for people; empty when unknown
  std::vector<std::string> sources;  // what was read, one line each
  std::vector<std::string> notes;    // on reading it
};

}  // namespace headroom::doctor
