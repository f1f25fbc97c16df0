// The list of techniques as a whole: rows T01 to T45, texts for every system, the same kind as headroom's own passes.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "doctor/remedies/option_text.h"
#include "doctor/remedies/rules.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/technique.h"
#include "incidents.h"
#include "planner/pipeline.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

// Rows without a remedy, and where doctor covers them.
const std::map<std::string, std::string> kRowsWithoutRemedy{
    {"T38", "reading the message is what doctor starts with"},
    {"T40", "the estimate itself"},
    {"T41", "the configurations that doctor reads"},
    {"T42", "the smallest set, and one remedy after another"},
};

TEST(Techniques, EveryRowHasARemedyOrAReason) {
  std::set<std::string> rows;
  for (const Technique& technique : all_techniques()) {
    std::string row;
    for (const char c : std::string(technique.row) + " ") {
      if (c == ' ' && !row.empty()) rows.insert(std::exchange(row, {}));
      if (c != ' ') row += c;
    }
  }
  for (int i = 1; i <= 45; ++i) {
    const std::string row = (i < 10 ? "T0" : "T") + std::to_string(i);
    EXPECT_NE(rows.count(row) > 0, kRowsWithoutRemedy.count(row) > 0) << row;
  }
  EXPECT_EQ(rows.size() + kRowsWithoutRemedy.size(), 45u) << "a row above T45";
}

TEST(Techniques, RecordsAreWhole) {
  const std::set<std::string_view> efforts{"flag", "config", "code", "install", "hardware"};
  std::set<std::string_view> names;
  for (const Technique& technique : all_techniques()) {
    EXPECT_TRUE(names.insert(technique.name).second) << technique.name << " twice";
    EXPECT_TRUE(efforts.count(technique.effort)) << technique.name;
    EXPECT_FALSE(technique.effect.empty()) << technique.name;
    EXPECT_GT(technique.slowdown, 0) << technique.name;
    // Techniques that keep the arithmetic have an accuracy cost below that of a flag.
    if (technique.arithmetic.kind == TechniqueKind::exact) {
      EXPECT_LE(technique.accuracy_cost, 0.5) << technique.name;
    }
  }
  EXPECT_THROW(technique("no-such-thing"), InternalError);
}

// If headroom has the technique, the record is that of the pass.
TEST(Techniques, NameHeadroomsPasses) {
  const std::vector<const PassInfo*> passes = all_passes();
  size_t common = 0;
  for (const Technique& technique : all_techniques()) {
    const PassInfo* const pass = technique.arithmetic.pass;
    if (pass == nullptr) continue;
    EXPECT_EQ(std::count(passes.begin(), passes.end(), pass) > 0, pass->name != "shard") << technique.name;
    ++common;
  }
  EXPECT_GE(common, 23u);
}

// docs/doctor_remedies.md has a line for each, with the record's row, kind and effort.
TEST(Techniques, AreDocumented) {
  std::ifstream file(std::string(HEADROOM_SOURCE_DIR) + "/docs/doctor_remedies.md");
  ASSERT_TRUE(file);
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const Technique& technique : all_techniques()) {
    const std::string line = "| " + std::string(technique.name) + " | " + std::string(technique.row) + " | " +
                             std::string(kind_name(technique.arithmetic.kind)) + " | " + std::string(technique.effort) +
                             " |";
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
}

Values some_values() {
  Values values;
  for (const char* name :
       {"micro",     "acc",          "seq",           "eval",  "steps",   "rank",       "alpha",     "model",
        "placement", "lora_builder", "qlora_builder", "dtype", "litgpt",  "layers",     "unfrozen",  "stack",
        "frozen",    "trainable",    "params",        "short", "upper",   "scaler",     "allocator", "mb",
        "kill",      "workers",      "gib",           "attn",  "axolotl", "factory",    "family",    "chunk",
        "gpus",      "recipe",       "full_shard",    "stage", "hf",      "accelerate", "oumi",      "gpu",
        "fraction",  "length",       "input",         "count", "tokens",  "split"})
    values.emplace_back(name, name == std::string("hf") || name == std::string("accelerate") ||
                                      name == std::string("oumi") || name == std::string("full_shard")
                                  ? "key=value"
                                  : "value");
  return values;
}

TEST(Techniques, EverySystemHasAnOptionOrAnAnswer) {
  for (const Technique& technique : all_techniques())
    for (const System system : all_systems())
      for (const Style style : {Style::python, Style::yaml, Style::json, Style::flags}) {
        const Spelt spelt = spell(technique.name, system, style, some_values());
        EXPECT_GT(spelt.text.size(), 3u) << technique.name;
        EXPECT_EQ(spelt.text.find('\n'), std::string::npos);
        for (const auto& [name, value] : some_values())
          EXPECT_EQ(spelt.text.find("{" + std::string(name) + "}"), std::string::npos) << spelt.text;
        if (!spelt.available) {
          EXPECT_TRUE(spelt.settings.empty()) << technique.name;
        }
      }
}

TEST(Techniques, NoOptionIsSpeltForNothing) {
  for (const OptionLine& line : all_option_lines()) EXPECT_NO_THROW(technique(line.technique)) << line.technique;
}

TEST(Techniques, NoOptionIsSpeltTwice) {
  std::set<std::pair<std::string_view, System>> seen;
  for (const OptionLine& line : all_option_lines())
    EXPECT_TRUE(seen.insert({line.technique, line.system}).second) << line.technique << " " << line.text;
}

// Every technique is reached in some case: no record is unused.
TEST(Techniques, EachIsOfferedOrRefusedSomewhere) {
  std::set<std::string> reached;
  const auto visit = [&](const Diagnosis& diagnosis) {
    for (const Remedy& remedy : diagnosis.remedies) reached.insert(remedy.name);
    for (const Refusal& refusal : diagnosis.refused) reached.insert(refusal.name);
  };
  for (const System system : all_systems()) {
    for (const char* phase : {"unknown", "eval", "load", "checkpoint_save", "prefill", "inference"}) {
      Job job = training_job(system, 1, 32768);
      if (system == System::vllm || system == System::sglang || system == System::llama_server || system == System::tgi)
        job = serving_job(system);
      job.devices.gpus = 2;
      job.parallel.sharding = phase[0] == 'e' ? Sharding::ddp : phase[0] == 'l' ? Sharding::zero2 : Sharding::zero3;
      job.batch.packing = phase[0] == 'e';
      if (phase[0] == 'u') job.batch.micro = 4, job.parallel.sharding.reset(), job.devices.gpus.reset();
      job.precision.fake_quantised = true;
      Case incident = case_of(job, "a100-40gb");
      visit(diagnose(incident));
      Message message = cuda_message(1, 0.1, 30, 6, 39.4);
      message.process_bytes = gib(37);
      message.phase = phase;
      message.format = phase[0] == 'p' ? "torch1_max_split" : "torch2.2";
      message.frames = {{"torch/nn/parallel/data_parallel.py", 1, "forward", ""}};
      message.text += " state_dict";
      incident.messages = {message};
      visit(diagnose(incident));
      for (const char* host : {"linux-oom", "pytorch-dataloader"}) {
        message.framework = host;
        message.text = "shared memory";
        if (host[0] == 'l') message.text = "Killed";
        incident.messages = {message};
        visit(diagnose(incident));
      }
      message.framework = "tensorflow";
      message.text = "OOM when allocating tensor";
      Case other;
      other.messages = {message};
      visit(diagnose(other));
      incident.job->task = Task::infer;
      incident.messages.clear();
      visit(diagnose(incident));
    }
  }
  for (const Situation* situation : all_situations())
    for (const Advice& advice : situation->advice()) reached.insert(std::string(advice.technique));
  for (const Technique& technique : all_techniques()) {
    EXPECT_TRUE(reached.count(std::string(technique.name))) << technique.name;
  }
}

// A job with only defaults, with and without a message, in every system: no rule crashes.
TEST(Techniques, BareJobsAreAnswered) {
  for (const System system : all_systems())
    for (const Task task : {Task::train, Task::serve, Task::infer}) {
      Case incident;
      Job job;
      job.system = system;
      job.task = task;
      incident.job = job;
      EXPECT_NO_THROW(diagnose(incident));
      incident.messages.push_back(cuda_message(1, 0.1, 10, 1, 12));
      EXPECT_NO_THROW(diagnose(incident));
      incident.shape = guess_model_shape(7e9);
      incident.gpu = find_gpu("t4");
      incident.estimate = estimate(job, *incident.shape, incident.gpu);
      EXPECT_NO_THROW(diagnose(incident));
    }
  EXPECT_NO_THROW(diagnose(Case{}));
}

TEST(Techniques, AdapterPackagesAreOnlyAskedForWhereTheyAreNeeded) {
  EXPECT_EQ(needs_in(technique("lora"), System::litgpt), "");
  EXPECT_EQ(needs_in(technique("lora"), System::hf_trainer), "peft");
  EXPECT_THAT(needs_in(technique("qlora"), System::torchtune), HasSubstr("torchao"));
  EXPECT_THAT(needs_in(technique("chunked-loss"), System::trl), HasSubstr("trl >= 1.4"));
}

}  // namespace
}  // namespace headroom::doctor
