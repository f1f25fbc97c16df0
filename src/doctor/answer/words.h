// Reads the prose around a message that has few figures.
#pragma once

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// When the log has only "CUDA out of memory" and is about TensorFlow or JAX, the message becomes theirs. When it has no
// message and the words say that a device or the host ran out, one is added. `incident.log_text` is in lower case.
void take_words(Case& incident);

}  // namespace headroom::doctor
