#include "doctor/remedies/unknown_program.h"

namespace headroom::doctor {
namespace {

struct AnyProgram {
  std::string_view technique, words;
};
constexpr AnyProgram kAnyProgram[] = {
    {"micro-batch", "a smaller batch: half of it (in training as many more steps per update)"},
    {"eval-batch", "a smaller batch in the evaluation"},
    {"eval-accumulation", "outputs of the evaluation moved to the host as they come"},
    {"input-size", "smaller inputs: images, crops or texts of half the size"},
    {"no-grad", "for prediction: the forward pass alone, nothing kept for a backward pass"},
    {"detach-history", "nothing kept from step to step: losses summed as numbers, outputs moved to the host"},
    {"empty-cache", "free what an earlier step or run left, before the step that fails"},
    {"find-sample", "look for one input that is far larger than the rest"},
    {"checkpointing", "activations computed again in the backward pass, if the program can"},
    {"half-inference", "weights and arithmetic in 16 bits"},
    {"mixed-precision", "arithmetic in 16 bits, if the program can"},
    {"fewer-workers", "fewer processes that load data"},
    {"on-cpu", "on the CPU: slow"},
};

}  // namespace

std::string_view words_for_any_program(std::string_view technique) {
  for (const AnyProgram& each : kAnyProgram)
    if (each.technique == technique) return each.words;
  return {};
}

}  // namespace headroom::doctor
