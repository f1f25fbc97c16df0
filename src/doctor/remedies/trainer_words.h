// Remedies in the words of the trainer that a post names, where no option table has its system: Lightning, Fabric,
// Megatron, Colossal-AI and others.
#pragma once

#include "doctor/remedies/rules.h"

namespace headroom::doctor {

// Replaces PyTorch's own code in the remedies by the options of that trainer, or where a post shows no code by words.
void spell_for_the_trainer(const CaseView& view, Findings& findings);

}  // namespace headroom::doctor
