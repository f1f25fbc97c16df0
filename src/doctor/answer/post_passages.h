// Finds the passages of a post that look like configurations: YAML, JSON, and calls of Python. Whether they are some is
// for the readers of configurations to say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/config/config_reader.h"

namespace headroom::doctor {

struct Passage {
  SourceKind kind = SourceKind::yaml;  // yaml, json or python
  int64_t line = 0;                    // of the post, from 1
  std::string text;  // with empty lines before it and in its gaps, so that each line has its number in the post
  bool cut = false;  // the post leaves out some of it ("...")
};

// In the order of their lines per kind; the code of a block is one passage. Left out are quotations of other people
// ("> ", what follows "commented 2 days ago" or "Answer:"), diffs, tracebacks, and passages introduced as something
// else than the failing job: a proposal, a comparison, what works.
std::vector<Passage> configuration_passages(std::string_view post);

}  // namespace headroom::doctor
