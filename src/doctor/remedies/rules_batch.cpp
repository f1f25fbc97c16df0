// Smaller batches and shorter sequences (T01, T02, T03, T10, T11).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool applies(const CaseView& s) { return s.training() && s.pool() == Pool::device; }

int64_t steps_for(const CaseView& s, int64_t micro) {
  const int64_t whole = *s.micro_batch() * s.accumulation();
  return (whole + micro - 1) / micro;
}

// If the global batch is stated and accumulation follows from it, only the micro-batch changes.
Changes batch_changes(const CaseView& s, int64_t micro) {
  Changes changes{{"micro_batch", std::to_string(micro)}};
  const bool derived = s.job().batch.global && !s.job().batch.accumulation && s.accumulation() > 1;
  if (!derived) changes.emplace_back("accumulation", std::to_string(steps_for(s, micro)));
  return changes;
}

// A smaller micro-batch affects convergence only if the global batch changes with it.
std::string convergence_caveat(const CaseView& s, int64_t micro) {
  const int64_t whole = *s.micro_batch() * s.accumulation(), after = (whole + micro - 1) / micro * micro;
  if (after == whole)
    return fmt::format("the global batch stays {} per device, so convergence stays: it changes only with that", whole);
  return fmt::format("the global batch becomes {} instead of {} per device: convergence changes a little", after,
                     whole);
}

// Rows per batch in a script that only predicts: there is no accumulation.
void inference_batch(const CaseView& s, Findings& findings) {
  if (s.training() || s.serving() || s.pool() != Pool::device) return;
  const std::optional<int64_t> micro = s.job().batch.micro;
  if (micro && *micro <= 1) return findings.refuse("micro-batch", "it is 1 already");
  int64_t chosen = micro ? *micro / 2 : 0;
  while (chosen > 1 && !s.enough_after({{"micro_batch", std::to_string(chosen)}})) chosen /= 2;
  Remedy remedy =
      make_remedy(s, "micro-batch", {}, micro ? Changes{{"micro_batch", std::to_string(chosen)}} : Changes{},
                  "activations shrink with the rows that go through at a time");
  remedy.set = fmt::format("DataLoader(..., batch_size={})", micro ? std::to_string(chosen) : "<half>");
  remedy.settings.clear();
  remedy.effect = "the same predictions";
  remedy.kind = "exact";
  findings.offer(std::move(remedy));
}

void micro_batch(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const std::optional<int64_t> micro = s.micro_batch();
  if (!micro) {
    findings.offer(make_remedy(s, "micro-batch", {{"micro", "<half>"}, {"acc", "<double>"}}, {},
                               "activations and logits shrink with the batch; the global batch stays"));
    return;
  }
  if (*micro <= 1) return findings.refuse("micro-batch", "it is 1 already");
  int64_t chosen = 1;
  for (int64_t candidate = *micro / 2; candidate >= 1; candidate /= 2)
    if (s.enough_after(batch_changes(s, candidate))) {
      chosen = candidate;
      break;
    }
  findings.offer(micro_batch_remedy(s, chosen));
}

void auto_batch(const CaseView& s, Findings& findings) {
  if (!applies(s) || s.micro_batch().value_or(2) <= 1) return;
  if (s.zero() || s.fsdp())
    return findings.refuse("auto-batch",
                           "automatic batch finders do not work under FSDP or DeepSpeed: the processes "
                           "do not fail together");
  if (s.job().batch.finds_size.value_or(false)) return;
  Remedy remedy = make_remedy(s, "auto-batch", {}, {}, "finds a batch that fits by failing and trying again");
  remedy.caveats.push_back("the global batch shrinks with it unless the accumulation is raised by hand");
  findings.offer(std::move(remedy));
}

void sequence_length(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const bool packed = s.job().batch.packing.value_or(false);
  const std::string_view name = packed ? "shorter-pack" : "sequence-length";
  const std::optional<int64_t> sequence = s.sequence();
  if (!sequence) {
    findings.offer(make_remedy(s, name, {{"seq", "<half>"}}, {}, "activations and logits shrink with the length"));
    return;
  }
  if (*sequence <= kLeastSequence) return findings.refuse(name, fmt::format("{} tokens are short already", *sequence));
  // Without an estimate of a quoted job any value is a guess: the half is the smallest change.
  int64_t chosen = s.incident().quoted ? std::max(kLeastSequence, *sequence / 2) : kLeastSequence;
  for (int64_t candidate = *sequence / 2; candidate >= kLeastSequence; candidate /= 2)
    if (s.enough_after({{"sequence", std::to_string(candidate)}})) {
      chosen = candidate;
      break;
    }
  findings.offer(sequence_remedy(s, chosen));
}

// Memory ran out in the middle of training: probably the longest rows were in one batch.
void length_buckets(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.message() || s.job().batch.packing.value_or(false)) return;
  if (s.job().objective == "pretrain" || s.job().batch.by_length) return;
  Remedy remedy =
      make_remedy(s, "length-buckets", {}, {},
                  "if it came in mid-training, one batch of long rows did it: the longest then comes first");
  remedy.caveats.push_back("the largest batch stays as large: the failure comes at step 1 instead of hour 3");
  if (remedy.set.find("train_sampling_strategy") != std::string::npos)
    remedy.caveats.push_back("group_by_length=True before transformers 5");
  findings.offer(std::move(remedy));
}

void sequence_chunks(const CaseView& s, Findings& findings) {
  if (!applies(s) || s.micro_batch().value_or(2) > 1 || s.sequence().value_or(0) < 4096) return;
  findings.offer(make_remedy(s, "sequence-chunks", {}, {{"chunked_loss", "true"}},
                             "below a batch of one only pieces of the sequence are left"));
}

double halvings(int64_t from, int64_t to) { return std::log2(static_cast<double>(from) / static_cast<double>(to)); }

constexpr Rule kRules[] = {micro_batch, inference_batch, auto_batch, sequence_length, length_buckets, sequence_chunks};

}  // namespace

std::span<const Rule> batch_rules() { return kRules; }

Remedy micro_batch_remedy(const CaseView& s, int64_t chosen) {
  const int64_t now = *s.micro_batch();
  const Changes changes = batch_changes(s, chosen);
  const std::string samples = chosen == 1 ? "1 sample" : fmt::format("{} samples", chosen);
  Remedy remedy =
      make_remedy(s, "micro-batch", {{"micro", std::to_string(chosen)}, {"acc", std::to_string(steps_for(s, chosen))}},
                  changes, fmt::format("activations and logits of {} instead of {}", samples, now));
  remedy.slowdown = 1 + 0.05 * halvings(now, chosen);
  remedy.caveats.push_back(convergence_caveat(s, chosen));
  if (s.job().system == System::litgpt)
    remedy.caveats.push_back("LitGPT derives the accumulation from train.global_batch_size: it follows by itself");
  return remedy;
}

namespace {

// The option that sets the sequence length now, if it is not the one of the option table: max_seq_length of Unsloth,
// max_source_length of older scripts.
void use_own_key(const CaseView& s, int64_t tokens, Remedy& remedy) {
  const auto origin = s.job().keys.origins.find("sequence");
  if (origin == s.job().keys.origins.end()) return;
  std::string key = origin->second.key;
  key = key.substr(key.find_last_of(". ") + 1);
  key.erase(0, key.find_first_not_of('-'));
  if (!key.starts_with("max_") || remedy.set.find(key) != std::string::npos) return;
  remedy.settings = {{key, std::to_string(tokens)}};
  const Style style = style_of(s.job(), "sequence");
  remedy.set = style == Style::flags    ? fmt::format("--{} {}", key, tokens)
               : style == Style::python ? fmt::format("{}={}", key, tokens)
                                        : fmt::format("{}: {}", key, tokens);
}

}  // namespace

namespace {

// No figure tells what a shorter prompt saves where the answer has a length of its own.
void leave_out_figures(Remedy& remedy) {
  remedy.saves_bytes.reset();
  remedy.fits_alone = remedy.likely_alone = false;
  remedy.terms_after.clear();
  remedy.changes.clear();
  remedy.caveats.push_back("the answers' length (max_target_length) counts too, and is not changed by it");
}

}  // namespace

Remedy sequence_remedy(const CaseView& s, int64_t chosen) {
  const int64_t now = *s.sequence();
  const bool packed = s.job().batch.packing.value_or(false);
  Remedy remedy =
      make_remedy(s, packed ? "shorter-pack" : "sequence-length", {{"seq", std::to_string(chosen)}},
                  {{"sequence", std::to_string(chosen)}}, fmt::format("{} tokens instead of {}", chosen, now));
  use_own_key(s, chosen, remedy);
  // The first halving costs what the technique's record says, each further one as much as its first.
  remedy.extra_cost = (packed ? 1.0 : 2.5) * std::max(0.0, halvings(now, chosen) - 1);
  if (s.cuts_answers_apart()) leave_out_figures(remedy);
  if (!packed) remedy.caveats.push_back("saves only where rows are longer than that");
  if (packed) remedy.caveats.push_back("rows longer than that are cut");
  if (s.job().system == System::neox) remedy.caveats.push_back("max_position_embeddings may stay");
  return remedy;
}

}  // namespace headroom::doctor
