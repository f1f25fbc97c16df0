#include "doctor/remedies/preconditions.h"

#include <algorithm>

#include "base/error.h"
#include "base/find_text.h"
#include "doctor/remedies/program_words.h"

namespace headroom::doctor {
namespace {

template <typename... Each>
constexpr FactSet set_of(Each... each) {
  return (fact_bit(each) | ... | 0U);
}
constexpr FactSet kNothing = 0, kStep = set_of(Fact::weights_loaded, Fact::step_failed),
                  kTrainingStep = kStep | fact_bit(Fact::training), kAfterTheLoad = fact_bit(Fact::weights_loaded),
                  kTraining = kAfterTheLoad | fact_bit(Fact::training);

struct TechniqueFacts {
  std::string_view technique;
  FactSet facts;
};
// Techniques of a training that also help beside its steps (in a merge, in prediction) do not presuppose it.
constexpr TechniqueFacts kOfTechniques[] = {
    // batch and data
    {"micro-batch", kStep},
    {"auto-batch", kTrainingStep},
    {"sequence-length", kStep},
    {"shorter-pack", kTrainingStep},
    {"length-buckets", kStep},
    {"sequence-chunks", kTrainingStep},
    {"eval-batch", kAfterTheLoad},
    {"eval-accumulation", kAfterTheLoad},
    {"no-grad", kAfterTheLoad | fact_bit(Fact::prediction)},
    {"input-size", kStep},
    {"find-sample", kAfterTheLoad},
    // code that holds on to memory
    {"detach-history", kAfterTheLoad},
    {"map-location", kNothing},
    // precision
    {"mixed-precision", kStep},
    {"half-weights", kTraining},
    {"half-inference", kNothing},
    // checkpointing
    {"checkpointing", kTrainingStep},
    {"activation-offload", kTrainingStep},
    // optimizer
    {"fused-optimizer", kTrainingStep},
    {"optimizer-8bit", kTrainingStep},
    {"paged-optimizer", kTraining},
    {"adafactor", kTraining},
    {"lion", kTraining},
    {"sgd", kTraining},
    {"optimizer-in-backward", kTrainingStep},
    {"set-to-none", kTraining},
    // several devices, host and disk
    {"shard", kNothing},
    {"shard-more", kNothing},
    {"offload-optimizer", kTraining},
    {"offload-parameters", kNothing},
    {"offload-nvme", kNothing},
    {"no-prefetch", kNothing},
    {"smaller-buckets", kNothing},
    {"context-parallel", kNothing},
    {"ddp", kNothing},
    {"bucket-view", kTraining},
    // kernels
    {"flash-attention", kStep},
    {"compile", kStep | fact_bit(Fact::pytorch_2)},
    {"liger", kStep},
    {"chunked-loss", kTrainingStep},
    // fewer or smaller weights
    {"lora", kTraining},
    {"qlora", fact_bit(Fact::training)},
    {"freeze", kTrainingStep},
    {"int8-training", fact_bit(Fact::training)},
    {"no-qat", fact_bit(Fact::training)},
    // allocator
    {"expandable-segments", fact_bit(Fact::segments_grow)},
    {"max-split-size", kNothing},
    {"own-allocator", kNothing},
    {"grow-on-demand", kNothing},
    {"empty-cache", kNothing},
    {"end-other-processes", kNothing},
    {"low-vram", kNothing},
    {"no-sysmem-fallback", kNothing},
    {"on-cpu", kNothing},
    // serving
    {"gpu-memory-utilization", kNothing},
    {"max-model-len", kNothing},
    {"max-sequences", kNothing},
    {"batched-tokens", kNothing},
    {"kv-dtype", kNothing},
    {"eager", kNothing},
    {"quantized-model", kNothing},
    {"tensor-parallel", kNothing},
    {"fewer-images", fact_bit(Fact::images)},
    {"serve-offload", kNothing},
    {"gpu-layers", kNothing},
    // host and files
    {"fewer-workers", kNothing},
    {"pageable-memory", kNothing},
    {"shared-memory", kNothing},
    {"host-memory", kNothing},
    {"lean-load", kNothing},
    {"sharded-save", kNothing},
    {"save-adapter", kNothing},
    {"plain-init", kNothing},
    {"no-offload", kNothing},
    {"more-swap", fact_bit(Fact::swap_can_grow)},
    {"measure", kNothing},
    {"other-version", kNothing},
    // hardware and model
    {"larger-gpu", kNothing},
    {"smaller-model", kNothing},
};

// What a text says beyond its technique.
constexpr Precondition kOfPhrases[] = {
    {"micro-batch", "half|a smaller batch|batch of 1|batch_size 1|batch_size=1|batch size of 1|batch size per GPU of 1",
     fact_bit(Fact::several_rows)},
    {"sequence-length", "max_length|max_seq_length|cutoff_len|tokens|tokenise|shorter texts", fact_bit(Fact::texts)},
    {"length-buckets", "rows of like length|group_by_length", fact_bit(Fact::texts)},
    {"fewer-workers", "DataLoader(", fact_bit(Fact::loader)},
    {"pageable-memory", "DataLoader(", fact_bit(Fact::pinned)},
    {"", "scaled_dot_product_attention", fact_bit(Fact::pytorch_2), "xformers"},
};

bool stands_in(std::string_view text, std::string_view phrases) {
  while (!phrases.empty()) {
    const std::string_view phrase = phrases.substr(0, phrases.find('|'));
    if (find_text(text, phrase) != std::string_view::npos) return true;
    phrases.remove_prefix(std::min(phrases.size(), phrase.size() + 1));
  }
  return false;
}

// A situation with signs of its own knows better than a word that something is trained.
bool knows_better(const Remedy& remedy, Fact fact) { return fact == Fact::training && remedy.evidence > kUsual; }

std::string denied_by(const Facts& facts, const Remedy& remedy) {
  const FactSet presupposed = presupposed_by(remedy);
  for (size_t i = 0; i < kFactCount; ++i) {
    const Fact fact = static_cast<Fact>(i);
    if (!holds_fact(presupposed, fact) || facts[fact].shown != Shown::no || knows_better(remedy, fact)) continue;
    return facts[fact].against;
  }
  return {};
}

// The condition of a remedy whose fact is open.
struct Condition {
  Fact fact;
  std::string_view words;
  std::string_view said;  // texts that name it themselves
};
constexpr Condition kConditions[] = {
    {Fact::training, "in training: ", "train|Train"},
    {Fact::prediction, "to predict: ", "predict|evaluat|infer_|if it|forward"},
};

}  // namespace

FactSet presupposed_by(std::string_view technique) {
  for (const TechniqueFacts& known : kOfTechniques)
    if (known.technique == technique) return known.facts;
  HR_CHECK(false, "no preconditions of the technique '{}'", technique);
  return kNothing;
}

FactSet presupposed_by(const Remedy& remedy) {
  FactSet facts = presupposed_by(std::string_view(remedy.name));
  if (written_for_pytorch(remedy.set)) facts |= fact_bit(Fact::pytorch);
  for (const Precondition& each : kOfPhrases)
    if ((each.technique.empty() || each.technique == remedy.name) && stands_in(remedy.set, each.phrases) &&
        !stands_in(remedy.set, each.unless))
      facts |= each.facts;
  return facts;
}

void check_preconditions(const Facts& facts, Findings& findings) {
  std::erase_if(findings.remedies, [&](const Remedy& remedy) {
    std::string why = denied_by(facts, remedy);
    if (why.empty()) return false;
    findings.refuse(remedy.name, std::move(why));
    return true;
  });
}

void say_conditions(const Facts& facts, Findings& findings) {
  constexpr double kOpen = 0.06;  // more than one place among a situation's advice
  for (Remedy& remedy : findings.remedies) {
    if (remedy.evidence > kUsual) continue;  // a situation with signs of its own knows what the program does
    for (const Condition& each : kConditions) {
      const bool open = holds_fact(presupposed_by(remedy), each.fact) && facts[each.fact].shown == Shown::open;
      if (!open || stands_in(remedy.set, each.said)) continue;
      remedy.evidence = std::max(0.0, remedy.evidence - kOpen);
      remedy.set = std::string(each.words) + remedy.set;
      remedy.settings.clear();
    }
  }
}

}  // namespace headroom::doctor
