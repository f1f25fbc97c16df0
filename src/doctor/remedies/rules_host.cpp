// Host memory: data loaders, shared memory, loading, saving, limits of the scheduler (T29, T39, T43, T44, T45).
#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool host(const CaseView& s) { return s.pool() != Pool::device; }

void shared_memory(const CaseView& s, Findings& findings) {
  if (s.pool() != Pool::shared_memory) return;
  Remedy remedy = make_remedy(s, "shared-memory", {}, {}, "data-loader workers hand batches over through /dev/shm");
  remedy.caveats.push_back("a container's /dev/shm has 64 MiB by default");
  findings.offer(std::move(remedy));
}

void fewer_workers(const CaseView& s, Findings& findings) {
  if (!host(s) || s.serving()) return;
  if (!s.has_job() && s.job().task == Task::infer) return;  // no loader of batches
  const std::optional<int64_t> workers = s.job().load.workers;
  if (workers && *workers == 0)
    return findings.refuse("fewer-workers", "the data is loaded by the process itself already");
  const int64_t fewer = workers ? *workers / 4 : 0;
  Changes changes;
  if (workers) changes.emplace_back("dataloader_workers", std::to_string(fewer));
  Remedy remedy = make_remedy(s, "fewer-workers", {{"workers", std::to_string(fewer)}}, std::move(changes),
                              "every worker is a process with its own copy of what the data set holds");
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  remedy.caveats.push_back("the advice of one worker per GPU is about speed, not memory");
  findings.offer(std::move(remedy));
}

void pageable(const CaseView& s, Findings& findings) {
  if (!host(s) || s.serving() || s.job().load.pin_memory == false) return;
  Remedy remedy = make_remedy(s, "pageable-memory", {}, {}, "pinned batches cannot be swapped and are rounded up");
  findings.offer(std::move(remedy));
}

// For PyTorch on the CPU, host memory holds the tensors.
void smaller_batch(const CaseView& s, Findings& findings) {
  if (s.pool() != Pool::host || !s.message() || s.message()->framework != "pytorch-cpu" || !s.training()) return;
  const int64_t now = s.micro_batch().value_or(0);
  if (now == 1) return findings.refuse("micro-batch", "it is 1 already");
  if (now > 1) return findings.offer(micro_batch_remedy(s, now / 2));
  findings.offer(make_remedy(s, "micro-batch", {{"micro", "<half>"}, {"acc", "<double>"}}, {},
                             "on the CPU the activations are in host memory"));
}

// Ollama compares the model with the free memory before it loads it.
void smaller_tag(const CaseView& s, Findings& findings) {
  if (s.pool() != Pool::host || !s.message() || s.message()->framework != "ollama") return;
  Remedy remedy = make_remedy(s, "max-model-len", {{"length", "4096"}, {"input", "4095"}}, {},
                              "the cache is part of what it weighs");
  remedy.set = "export OLLAMA_CONTEXT_LENGTH=4096";
  remedy.settings.clear();
  findings.offer(std::move(remedy));
  Remedy tag = make_remedy(s, "quantized-model", {}, {}, "the file's size is most of what it weighs");
  tag.set = "a smaller tag of the model: fewer parameters, or q4_K_M";
  tag.settings.clear();
  findings.offer(std::move(tag));
}

void lean_load(const CaseView& s, Findings& findings) {
  const bool loading = s.phase("load") || (host(s) && s.phase("host_ram"));
  if (!loading || s.serving() || s.job().load.ram_efficient) return;
  Remedy remedy = make_remedy(s, "lean-load", {}, {},
                              s.sharded() ? "every process reads the whole model, unless only the first does"
                                          : "a plain load holds the file and the model at once");
  if (s.shape()) {
    const int64_t copy = static_cast<int64_t>(s.shape()->parameters * 2);
    remedy.why += fmt::format(" ({} of 16-bit weights)", figure(copy));
  }
  remedy.needs = "transformers >= 4.38 or torch >= 2.1; accelerate";
  findings.offer(std::move(remedy));
}

void sharded_save(const CaseView& s, Findings& findings) {
  if (!s.phase("checkpoint_save") ||
      !(s.sharded() || s.zero() || s.message()->text.find("state_dict") != std::string::npos))
    return;
  if (s.job().parallel.sharded_save) return findings.refuse("sharded-save", "it is on already");
  Remedy remedy = make_remedy(s, "sharded-save", {}, {}, "a full state dict gathers the whole model on one device");
  remedy.caveats.push_back("the parts are joined after training, on a machine with room");
  findings.offer(std::move(remedy));
}

void measure(const CaseView& s, Findings& findings) {
  if (!s.message() || !s.message()->framework.starts_with("pytorch-cuda") || s.serving()) return;
  Remedy remedy =
      make_remedy(s, "measure", {}, {}, "shows which line holds which bytes, when nothing above explains it");
  remedy.caveats.push_back("it saves nothing by itself; view at pytorch.org/memory_viz, or give two sizes to --probe");
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {smaller_batch,    smaller_tag, shared_memory, fewer_workers, pageable,
                           more_host_memory, lean_load,   sharded_save,  measure};

}  // namespace

std::span<const Rule> host_rules() { return kRules; }

}  // namespace headroom::doctor
