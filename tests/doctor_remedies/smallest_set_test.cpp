// The smallest set: it fits by the estimator, no part of it does, and no cheaper set does.
#include <set>

#include "doctor/remedies/balance.h"
#include "doctor/remedies/conflicts.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

bool fits_with(const Case& incident, const Changes& changes) {
  const Job changed = with_changes(*incident.job, changes);
  const Estimate after = estimate(changed, *incident.shape, incident.gpu);
  if (incident.job->task != Task::serve)
    return fits(after.likely_bytes, *incident.capacity_bytes) && after.high_bytes <= *incident.capacity_bytes;
  const int64_t length = changed.serving.max_model_len.value_or(incident.shape->max_positions);
  return fits(after.likely_bytes, *incident.capacity_bytes) &&
         (!after.kv_tokens || static_cast<double>(*after.kv_tokens) >= 1.1 * static_cast<double>(length));
}

struct SetCase {
  const char* what;
  System system;
  const char* model;
  const char* gpu;
  int64_t batch, sequence;
  bool checkpointing;
};

constexpr SetCase kCases[] = {
    {"a batch too many", System::hf_trainer, "meta-llama/Llama-3.2-1B", "rtx-4090", 16, 1024, false},
    {"logits", System::trl, "Qwen/Qwen2.5-1.5B", "t4", 8, 2048, true},
    {"a model too large", System::oumi, "meta-llama/Llama-3.1-8B", "rtx-4090", 2, 2048, true},
    {"a long context", System::oumi, "meta-llama/Llama-3.1-8B", "a100-40gb", 1, 32768, false},
    {"torchtune", System::torchtune, "meta-llama/Llama-3.2-3B", "rtx-4090", 4, 4096, true},
    {"axolotl", System::axolotl, "mistralai/Mistral-7B-v0.1", "a10", 2, 8192, true},
    {"LitGPT", System::litgpt, "meta-llama/Llama-2-7b-hf", "a100-40gb", 4, 4096, false},
    {"a small card", System::pytorch_script, "bert-large-uncased", "gtx-1080", 32, 512, false},
};

Case incident_of(const SetCase& row) {
  Job job = training_job(row.system, row.batch, row.sequence);
  job.model = row.model;
  if (row.checkpointing) job.compute.checkpointing = true;
  return case_of(job, row.gpu);
}

TEST(SmallestSet, FitsByTheEstimatorAndNoPartOfItDoes) {
  for (const SetCase& row : kCases) {
    const Case incident = incident_of(row);
    const Diagnosis diagnosis = diagnose(incident);
    ASSERT_EQ(diagnosis.fits, false) << row.what;
    ASSERT_FALSE(diagnosis.smallest_fitting_set.empty()) << row.what;
    if (diagnosis.set_changes.empty()) continue;
    EXPECT_TRUE(fits_with(incident, diagnosis.set_changes)) << row.what;
    EXPECT_EQ(diagnosis.bytes_after,
              estimate(with_changes(*incident.job, diagnosis.set_changes), *incident.shape, incident.gpu).likely_bytes);
    const size_t count = diagnosis.smallest_fitting_set.size();
    for (size_t mask = 0; mask + 1 < (size_t{1} << count); ++mask) {
      Changes part;
      for (size_t i = 0; i < count; ++i)
        if (mask >> i & 1) part = together(part, expect_remedy(diagnosis, diagnosis.smallest_fitting_set[i]).changes);
      EXPECT_FALSE(fits_with(incident, part)) << row.what << " without a member, mask " << mask;
    }
  }
}

// By brute force over every set of at most three of the offered remedies: none that fits costs less.
TEST(SmallestSet, NothingCheaperFits) {
  for (const SetCase& row : kCases) {
    const Case incident = incident_of(row);
    const Diagnosis diagnosis = diagnose(incident);
    if (diagnosis.set_changes.empty()) continue;
    double cost = 0;
    for (const std::string& name : diagnosis.smallest_fitting_set) cost += expect_remedy(diagnosis, name).cost;
    std::vector<const Remedy*> all;
    for (const Remedy& remedy : diagnosis.remedies)
      if (!remedy.changes.empty() && remedy.cost < cost) all.push_back(&remedy);
    const System system = incident.job->system;
    const auto together_cost = [&](const std::vector<const Remedy*>& members) -> std::optional<double> {
      Changes changes;
      double sum = 0;
      for (size_t i = 0; i < members.size(); ++i) {
        for (size_t j = 0; j < i; ++j)
          if (!conflict_of(*members[i], *members[j], system).empty()) return std::nullopt;
        changes = together(changes, members[i]->changes);
        sum += members[i]->cost;
      }
      if (sum >= cost - 1e-9 || !fits_with(incident, changes)) return std::nullopt;
      return sum;
    };
    for (size_t a = 0; a < all.size(); ++a) {
      EXPECT_FALSE(together_cost({all[a]})) << row.what << ": " << all[a]->name;
      for (size_t b = a + 1; b < all.size(); ++b) {
        EXPECT_FALSE(together_cost({all[a], all[b]})) << row.what << ": " << all[a]->name << " " << all[b]->name;
        for (size_t c = b + 1; c < all.size(); ++c)
          EXPECT_FALSE(together_cost({all[a], all[b], all[c]}))
              << row.what << ": " << all[a]->name << " " << all[b]->name << " " << all[c]->name;
      }
    }
  }
}

TEST(SmallestSet, HoldsNoConflicts) {
  for (const SetCase& row : kCases) {
    const Case incident = incident_of(row);
    const Diagnosis diagnosis = diagnose(incident);
    for (const std::string& a : diagnosis.smallest_fitting_set)
      for (const std::string& b : diagnosis.smallest_fitting_set) {
        if (a >= b) continue;
        EXPECT_TRUE(conflict_of(expect_remedy(diagnosis, a), expect_remedy(diagnosis, b), incident.job->system).empty())
            << row.what << ": " << a << " " << b;
      }
  }
}

// The largest batch that fits when other members make room.
TEST(SmallestSet, TakesNoSmallerBatchThanItMust) {
  const Case incident = incident_of({"", System::pytorch_script, "bert-large-uncased", "gtx-1080", 32, 512, false});
  const Diagnosis diagnosis = diagnose(incident);
  const Changes& changes = diagnosis.set_changes;
  const auto micro =
      std::find_if(changes.begin(), changes.end(), [](const auto& c) { return c.first == "micro_batch"; });
  if (micro == changes.end()) GTEST_SKIP() << "the set has no smaller batch";
  Changes twice = changes;
  for (auto& [name, value] : twice)
    if (name == "micro_batch") value = std::to_string(2 * std::stoll(value));
  EXPECT_FALSE(fits_with(incident, twice));
}

TEST(SmallestSet, AnotherGpuWhereNothingElseDoes) {
  Job job = training_job(System::neox, 1, 512);
  job.model = "meta-llama/Llama-3.1-70B";
  job.compute.checkpointing = true;
  const Diagnosis diagnosis = diagnose(case_of(job, "rtx-3060"));
  EXPECT_EQ(diagnosis.fits, false);
  for (const std::string& name : diagnosis.smallest_fitting_set) EXPECT_NE(name, "larger-gpu");
}

TEST(SmallestSet, AServersSetHoldsOneRequest) {
  Job job = serving_job(System::vllm);
  job.serving.max_model_len = 65536;
  const Case incident = case_of(job, "l4");
  const Diagnosis diagnosis = diagnose(incident);
  ASSERT_FALSE(diagnosis.set_changes.empty());
  EXPECT_TRUE(fits_with(incident, diagnosis.set_changes));
}

TEST(Order, FirstWhatFitsAloneThenTheSetAndByCost) {
  for (const SetCase& row : kCases) {
    const Diagnosis diagnosis = diagnose(incident_of(row));
    ASSERT_FALSE(diagnosis.remedies.empty());
    double last = -1;
    bool alone = true, proven = true;
    for (const Remedy& remedy : diagnosis.remedies) {
      // A proven set comes before the rest; if nothing is proven, the remedy that saves most is in third place.
      if (in_set(diagnosis, remedy.name) || remedy.name == diagnosis.surest) continue;
      const bool replaces = remedy.name == "larger-gpu" || remedy.name == "smaller-model";
      if (proven && !remedy.fits_alone) last = -1;  // remedies that are only likely come after, again by cost
      proven = proven && remedy.fits_alone;
      if (!remedy.likely_alone || replaces) alone = false;
      EXPECT_TRUE(alone || replaces || !remedy.likely_alone) << row.what << ": " << remedy.name << " comes too late";
      EXPECT_TRUE(!alone || remedy.cost >= last) << row.what << ": " << remedy.name;
      last = remedy.cost;
    }
    for (size_t i = 0; i < diagnosis.smallest_fitting_set.size(); ++i) {
      if (diagnosis.remedies[0].likely_alone) break;
      EXPECT_TRUE(in_set(diagnosis, diagnosis.remedies[i].name)) << row.what << " " << i;
    }
  }
}

// Every offered remedy with changes saves the difference of the estimates, and never less than nothing.
TEST(Savings, AreTheDifferenceOfTwoEstimates) {
  // Paged states and servers' shares are not differences of two estimates: they have their own tests.
  const std::set<std::string> apart{"paged-optimizer", "gpu-memory-utilization"};
  for (const System system : all_systems()) {
    const bool server =
        system == System::vllm || system == System::sglang || system == System::llama_server || system == System::tgi;
    for (const char* gpu : {"rtx-3060", "a100-80gb"}) {
      const Case incident = case_of(server ? serving_job(system) : training_job(system, 4, 4096), gpu);
      for (const Remedy& remedy : diagnose(incident).remedies) {
        EXPECT_GE(remedy.saves_bytes.value_or(0), 0) << remedy.name;
        if (remedy.changes.empty() || !remedy.saves_bytes || apart.count(remedy.name)) continue;
        const Estimate after = estimate(with_changes(*incident.job, remedy.changes), *incident.shape, incident.gpu);
        EXPECT_EQ(*remedy.saves_bytes, incident.estimate->likely_bytes - after.likely_bytes) << remedy.name;
        EXPECT_TRUE(!remedy.likely_alone || fits(after.likely_bytes, *incident.capacity_bytes)) << remedy.name;
        EXPECT_TRUE(!remedy.fits_alone || server || after.high_bytes <= *incident.capacity_bytes) << remedy.name;
      }
    }
  }
}

// What the message needs beyond the estimate is still needed after a remedy.
TEST(Savings, AreCountedFromWhatTheMessageShows) {
  Case incident = case_of(training_job(System::hf_trainer, 4, 512), "a100-40gb");
  const int64_t estimated = incident.estimate->likely_bytes;
  ASSERT_LT(estimated, 30 * kGiB);
  incident.messages.push_back(cuda_message(2, 0.1, 38.5, 0.3, 39.4));
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_GT(*diagnosis.need_bytes, 40 * kGiB);
  const Remedy remedy = expect_remedy(diagnosis, "micro-batch");
  const Estimate after = estimate(with_changes(*incident.job, remedy.changes), *incident.shape, incident.gpu);
  EXPECT_EQ(*remedy.saves_bytes, estimated - after.likely_bytes);
}

}  // namespace
}  // namespace headroom::doctor
