// Plain kernel of attention_paged for every legal call: one row and head at a time, double arithmetic.
#pragma once

#include "ops/paged_attention/shape.h"

namespace headroom {

void paged_reference(const PagedCall& call);

}  // namespace headroom
