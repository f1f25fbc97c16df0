// Chooses the plan's program that runs a batch: that of the shortest length that holds its longest row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace headroom {

class BucketPrograms {
 public:
  // The bucket programs of `program` and the program itself.
  BucketPrograms(const Plan& plan, const std::string& program);

  // The program's name for rows of up to `longest` tokens. No heap allocation.
  const std::string& holding(int64_t longest) const;
  // The program of the full length.
  const std::string& full() const { return names_.back(); }

 private:
  std::vector<int64_t> lengths_;  // ascending, without the full length
  std::vector<std::string> names_;
};

}  // namespace headroom
