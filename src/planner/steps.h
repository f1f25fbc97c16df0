// The steps of a plan between its techniques' passes, as run_pass() names them.
#pragma once

#include "passes/pass_info.h"

namespace headroom {

inline constexpr PassInfo kAutodiff{"autodiff", PassStage::model, TechniqueKind::exact,
                                    "the training step's backward pass and its updates"};
inline constexpr PassInfo kLowRankProducts{"low-rank-products", PassStage::schedule, TechniqueKind::exact,
                                           "the thin products of adapters joined to their neighbours"};
inline constexpr PassInfo kNormCasts{"norm-casts", PassStage::schedule, TechniqueKind::exact,
                                     "norms on a GPU that write the bf16 copy which products read"};
inline constexpr PassInfo kNormSums{"norm-sums", PassStage::schedule, TechniqueKind::exact,
                                    "norms on a GPU that add what they join"};
inline constexpr PassInfo kNarrowLogits{"narrow-logits", PassStage::schedule, TechniqueKind::lossy,
                                        "logits in bf16 on a GPU, where products are in bf16"};
inline constexpr PassInfo kAttentionKernels{"attention-kernels", PassStage::schedule, TechniqueKind::reassociating,
                                            "attention by cuDNN or our own kernels, as the profile measured them"};
inline constexpr PassInfo kCompact{"compact", PassStage::schedule, TechniqueKind::exact, "what is dead is dropped"};

// Without a gradient.
inline constexpr PassInfo kLoraSlots{"lora-slots", PassStage::model, TechniqueKind::lossy,
                                     "slots for the adapters of a server's requests"};
inline constexpr PassInfo kBatchInvariant{"batch-invariant", PassStage::schedule, TechniqueKind::reassociating,
                                          "products whose rows do not depend on how many rows there are"};
inline constexpr PassInfo kLinearGroups{"linear-groups", PassStage::schedule, TechniqueKind::exact,
                                        "linear layers of one input as one product"};
inline constexpr PassInfo kHostStage{"host-stage", PassStage::schedule, TechniqueKind::exact,
                                     "the host's buffer through which weights are loaded"};

}  // namespace headroom
