// Attention of one query per batch row against a cache: no tiles, as every key is used once per head.
#pragma once

#include "ops/attention/forward_driver.h"

namespace headroom {

// shape.queries is 1, call.lse null, call.scratch holds a DecodeBlock. The keys are cut into chunks of kDecodeChunk
// that are joined in order, so the result does not depend on the team.
void run_decode(const ForwardCall& call);

}  // namespace headroom
