// Several GPUs, the host and the disk (T12 to T15, T17, T30).
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool applies(const CaseView& s) { return s.training() && s.pool() == Pool::device; }

Values gpu_values(const CaseView& s, int64_t gpus) {
  // FSDP2 and FSDP1 have different keys for it; DeepSpeed numbers the stages.
  const bool second = s.job().parallel.fsdp2;
  return {{"gpus", std::to_string(gpus)},
          {"recipe", s.lora() ? "lora" : "full"},
          {"launcher", s.zero() ? "" : "distributed_type=FSDP; "},
          {"full_shard", s.zero() ? "deepspeed_config.zero_stage=3"
                         : second ? "fsdp_config.fsdp_reshard_after_forward=True"
                                  : "fsdp_config.fsdp_sharding_strategy=FULL_SHARD"}};
}

// Every doubling of the number of GPUs after the first costs as much as an installation.
double cost_of_gpus(const CaseView& s, int64_t gpus) {
  double cost = 0;
  for (int64_t n = 2 * s.gpus(); n < gpus; n *= 2) cost += 4;
  return cost;
}

Changes shard_changes(int64_t gpus) { return {{"gpus", std::to_string(gpus)}, {"sharding", "zero3"}}; }

// The smallest number of GPUs that fits, `least` or more; else `least`.
int64_t enough_gpus(const CaseView& s, int64_t least) {
  for (int64_t gpus = least; gpus <= 16; gpus *= 2)
    if (s.enough_after(shard_changes(gpus))) return gpus;
  return least;
}

void shard(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.sharded() && s.gpus() > 1) {
    const int64_t more = enough_gpus(s, 2 * s.gpus());
    Remedy remedy = make_remedy(s, "shard", gpu_values(s, more), shard_changes(more),
                                fmt::format("{} GPUs instead of {}", more, s.gpus()));
    remedy.effort = "hardware";
    remedy.extra_cost = cost_of_gpus(s, more);
    return findings.offer(std::move(remedy));
  }
  if (s.job().parallel.sharding == Sharding::zero2 || s.job().parallel.sharding == Sharding::zero1) {
    Changes changes{{"sharding", "zero3"}};
    return findings.offer(
        make_remedy(s, "shard-more", gpu_values(s, s.gpus()), std::move(changes), "stage 3 splits the weights too"));
  }
  if (s.sharded() && s.incident().quoted)
    return findings.refuse("shard", "it is divided already; among how many devices is not said");
  const int64_t gpus = s.gpus() > 1 ? s.gpus() : enough_gpus(s, 2);
  Remedy remedy = make_remedy(s, "shard", gpu_values(s, gpus), shard_changes(gpus),
                              fmt::format("weights, gradients and states split over {} GPUs", gpus));
  if (s.gpus() == 1) {
    remedy.effort = "hardware";
    remedy.extra_cost = cost_of_gpus(s, gpus);
  }
  if (s.quantized_base())
    remedy.caveats.push_back("4-bit weights shard only with bnb_4bit_quant_storage set to the compute dtype");
  if (s.job().batch.finds_size.value_or(false))
    remedy.caveats.push_back("drop auto_find_batch_size: it does not work under FSDP");
  if (s.optimizer().find("8bit") != std::string::npos)
    remedy.caveats.push_back("under ZeRO the 8-bit optimizer must go; the states are split instead");
  findings.offer(std::move(remedy));
}

void offload_optimizer(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.job().parallel.offload_optimizer.value_or(Offload::none) != Offload::none)
    return findings.refuse("offload-optimizer", "the states are on the host already");
  if (s.lora()) return findings.refuse("offload-optimizer", "under LoRA the states are small");
  Changes changes{{"offload_optimizer", "cpu"}};
  if (!s.job().parallel.sharding || *s.job().parallel.sharding == Sharding::none ||
      *s.job().parallel.sharding == Sharding::ddp)
    changes.emplace_back("sharding", "zero2");
  const bool stage3 = s.sharded();
  Remedy remedy = make_remedy(s, "offload-optimizer", {{"stage", stage3 ? "3" : "2"}}, std::move(changes),
                              "states and their update move to the host");
  if (remedy.host_bytes && *remedy.host_bytes > 0)
    remedy.caveats.push_back(fmt::format("takes {} of host memory per process", figure(*remedy.host_bytes)));
  if (s.optimizer().find("8bit") != std::string::npos)
    remedy.caveats.push_back("needs a 32-bit optimizer: DeepSpeed's CPU Adam");
  findings.offer(std::move(remedy));
}

void offload_parameters(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.job().parallel.offload_parameters.value_or(Offload::none) != Offload::none)
    return findings.refuse("offload-parameters", "the weights are on the host already");
  if (s.quantized_base()) return findings.refuse("offload-parameters", "4- and 8-bit weights cannot be offloaded");
  if (s.job().system == System::torchtune && s.gpus() == 1 && s.has_job())
    return findings.refuse("offload-parameters",
                           "torchtune's fsdp_cpu_offload is for its distributed recipes: two GPUs or more");
  // FSDP needs several processes; DeepSpeed's stage 3 also works on one device.
  const bool one = s.gpus() == 1 || s.zero();
  Remedy remedy = make_remedy(s, "offload-parameters",
                              {{"hf", one ? "deepspeed=zero3_offload.json" : "fsdp=full_shard auto_wrap offload"},
                               {"accelerate", one ? "deepspeed_config.zero_stage=3; "
                                                    "deepspeed_config.offload_param_device=cpu; "
                                                    "deepspeed_config.offload_optimizer_device=cpu"
                                                  : "fsdp_config.fsdp_offload_params=True"},
                               {"oumi", one ? "deepspeed.enable_deepspeed=True; deepspeed.zero_stage=ZERO_3; "
                                              "deepspeed.offload_param.device=cpu; "
                                              "deepspeed.offload_optimizer.device=cpu"
                                            : "fsdp.enable_fsdp=True; fsdp.cpu_offload=True"}},
                              {{"sharding", "zero3"}, {"offload_parameters", "cpu"}, {"offload_optimizer", "cpu"}},
                              "weights come from the host layer by layer; states and update stay there");
  if (remedy.host_bytes && *remedy.host_bytes > 0)
    remedy.caveats.push_back(fmt::format("takes {} of host memory per process", figure(*remedy.host_bytes)));
  if (one && !s.zero() && (s.job().system == System::hf_trainer || s.job().system == System::trl))
    remedy.caveats.push_back(
        "zero3_offload.json holds {\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}, "
        "\"offload_optimizer\": {\"device\": \"cpu\"}}}");
  if (s.job().batch.accumulation.value_or(1) > 1 && s.fsdp())
    remedy.caveats.push_back("FSDP with cpu_offload and accumulation outside no_sync() copies gradients every step");
  findings.offer(std::move(remedy));
}

void offload_nvme(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.has_job() || s.quantized_base() || s.lora()) return;
  if (s.job().parallel.offload_parameters == Offload::nvme) return findings.refuse("offload-nvme", "on already");
  Remedy remedy = make_remedy(s, "offload-nvme", {},
                              {{"sharding", "zero3"}, {"offload_parameters", "nvme"}, {"offload_optimizer", "nvme"}},
                              "weights and states on a local disk, a window of them in memory");
  remedy.caveats.push_back("a network file system is too slow for this");
  findings.offer(std::move(remedy));
}

void no_prefetch(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.sharded()) return;
  if (s.job().parallel.fsdp2)
    return findings.refuse("no-prefetch", "FSDP2 has no options for it: it fetches one layer ahead by itself");
  const bool forward = s.job().parallel.forward_prefetch.value_or(false);
  const bool accelerate = s.job().system == System::accelerate || s.job().system == System::hf_trainer;
  const bool backward = s.job().parallel.backward_prefetch.value_or(!accelerate);
  if (!forward && !backward)
    return findings.refuse("no-prefetch", s.job().parallel.backward_prefetch
                                              ? "forward and backward prefetch are off already"
                                              : "prefetch is off by default already");
  Remedy remedy = make_remedy(s, "no-prefetch", {}, {{"forward_prefetch", "false"}, {"backward_prefetch", "false"}},
                              "one gathered layer at a time instead of two");
  if (!forward) remedy.caveats.push_back("forward prefetch is off by default already: only the backward one counts");
  remedy.caveats.push_back("communication no longer hides behind computation: significantly slower between nodes");
  findings.offer(std::move(remedy));
}

void smaller_buckets(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.zero()) return;
  const auto bucket = s.job().parallel.buffers.find("reduce_bucket_size");
  if (bucket != s.job().parallel.buffers.end() && bucket->second <= 50'000'000)
    return findings.refuse("smaller-buckets", "the buckets are small already");
  findings.offer(
      make_remedy(s, "smaller-buckets", {},
                  {{"buffers.reduce_bucket_size", "50000000"}, {"buffers.allgather_bucket_size", "50000000"}},
                  "DeepSpeed's buckets of 5e8 elements take GiBs"));
}

void context_parallel(const CaseView& s, Findings& findings) {
  if (!applies(s) || s.sequence().value_or(0) < 16384) return;
  const int64_t gpus = s.gpus() > 1 ? s.gpus() : 2;
  Remedy remedy = make_remedy(s, "context-parallel", {{"gpus", std::to_string(gpus)}},
                              {{"gpus", std::to_string(gpus)}, {"context_parallel", std::to_string(gpus)}},
                              "activations of a sequence split over the GPUs");
  if (s.gpus() == 1) remedy.effort = "hardware";
  findings.offer(std::move(remedy));
}

void ddp(const CaseView& s, Findings& findings) {
  if (!s.message()) return;
  for (const Frame& frame : s.message()->frames)
    if (frame.file.find("parallel/data_parallel") != std::string::npos)
      return findings.offer(make_remedy(s, "ddp", {{"gpus", std::to_string(std::max<int64_t>(2, s.gpus()))}}, {},
                                        "DataParallel gathers outputs and gradients on the first GPU"));
}

void bucket_view(const CaseView& s, Findings& findings) {
  if (!applies(s) || s.job().parallel.sharding != Sharding::ddp || s.lora()) return;
  Remedy remedy = make_remedy(s, "bucket-view", {}, {}, "DDP keeps a second copy of the gradients in its buckets");
  if (s.term("gathered parameters") > 0) remedy.saves_bytes = s.term("gathered parameters");
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {shard,       offload_optimizer, offload_parameters, offload_nvme,
                           no_prefetch, smaller_buckets,   context_parallel,   ddp,
                           bucket_view};

}  // namespace

std::span<const Rule> sharding_rules() { return kRules; }

}  // namespace headroom::doctor
