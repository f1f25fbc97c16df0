#include "options/batch_options.h"

#include "options/option_checks.h"

namespace headroom {

void check_options(const BatchOptions& o) {
  using namespace option_checks;
  at_least("global-batch-size", o.global_batch_size, 1);
  at_least("micro-batch-size", o.micro_batch_size, 0);
  at_least("max-seq-length", o.max_seq_length, 0);
  if (o.max_seq_length == 1) refuse("max-seq-length", "1", "at least 2: a token is predicted from the one before it");
  real_in("mlm-probability", o.mlm_probability, 0.001, 1);
}

}  // namespace headroom
