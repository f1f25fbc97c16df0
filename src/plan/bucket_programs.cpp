#include "plan/bucket_programs.h"

#include <algorithm>

namespace headroom {

BucketPrograms::BucketPrograms(const Plan& plan, const std::string& program) : lengths_(plan.choices.buckets) {
  for (int64_t length : lengths_) names_.push_back(bucket_program(program, length));
  names_.push_back(program);
}

const std::string& BucketPrograms::holding(int64_t longest) const {
  const auto at = std::lower_bound(lengths_.begin(), lengths_.end(), longest);
  return names_[static_cast<size_t>(at - lengths_.begin())];
}

}  // namespace headroom
