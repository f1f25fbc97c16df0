// What people say around a message that says little itself.
#pragma once

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// Where nothing but "CUDA out of memory" stands and the log speaks of TensorFlow or JAX, it is theirs. Where no message
// stands at all and the words tell that a device or the host ran out, one that says so. `incident.log_text` in lower
// case.
void take_words(Case& incident);

}  // namespace headroom::doctor
