// Tests of models with experts beyond the other golden cases: greedy tokens with the key-value cache, files with one
// tensor per expert, exact curves under every technique, frozen experts, adapters.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/threads.h"
#include "device/device.h"
#include "engine/fresh_model.h"
#include "formats/atomic_dir.h"
#include "generate/generator.h"
#include "models/decoder.h"
#include "planner/inference.h"
#include "scratch_folder.h"
#include "training_run.h"
#include "weights/weights.h"

namespace headroom::test {
namespace {

namespace fs = std::filesystem;

// A generation program with the case's weights.
struct Generation {
  Generation(const GoldenCase& golden, int64_t positions) {
    PlanRequest request;
    request.profile = load_profile("cpu-avx2");
    request.facts = cpu_facts(1);
    set_threads(request.facts.threads);
    request.budget_bytes = int64_t{1} << 30;
    const std::vector<int64_t> chunks{4};
    plan = plan_generation(request, {}, chunks, [&](int64_t chunk) {
      return build_generation(golden.model.spec, positions, chunk, DType::f32);
    });
    device = make_cpu_device(plan.facts);
    executor = std::make_unique<Executor>(plan, *device, nullptr);
    load_weights(*executor, golden.model.spec, SafetensorsSet::open(golden.model.directory));
  }
  Plan plan;
  std::unique_ptr<Device> device;
  std::unique_ptr<Executor> executor;
};

// A training program with the case's weights: it can save.
struct Training {
  explicit Training(const GoldenCase& golden) {
    plan = search_training_plan(training_request(plain_options(golden), golden.model)).plan;
    device = make_cpu_device(plan.facts);
    executor = std::make_unique<Executor>(plan, *device, nullptr);
    load_weights(*executor, golden.model.spec, SafetensorsSet::open(golden.model.directory));
  }
  Plan plan;
  std::unique_ptr<Device> device;
  std::unique_ptr<Executor> executor;
};

class Experts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { golden_ = GoldenCase::open(GetParam()); }
  GoldenCase golden_;
};

TEST_P(Experts, GreedyTokensAreTransformers) {
  const Json expected = read_json(golden_.folder / "expected.json").at("greedy");
  const auto prompt = expected.at("prompt").get<std::vector<int32_t>>();
  const auto tokens = expected.at("tokens").get<std::vector<int32_t>>();
  Generation generation(golden_, static_cast<int64_t>(prompt.size() + tokens.size()));
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_new_tokens = static_cast<int64_t>(tokens.size());
  EXPECT_EQ(generate_tokens(*generation.executor, prompt, options, [](int32_t) { return true; }), tokens);
}

// Five steps; losses within 1e-5 of transformers', with one micro-batch and with the techniques that split and
// recompute work.
TEST_P(Experts, LossesOfFiveStepsAreTransformers) {
  const Json json = read_json(golden_.folder / "curves.json");
  TrainOptions options = plain_options(golden_);
  options.schedule.learning_rate = json.at("learning_rate").get<double>();
  options.optimizer.weight_decay = json.at("weight_decay").get<double>();
  options.optimizer.adam_beta1 = json.at("adam_beta1").get<double>();
  options.optimizer.adam_beta2 = json.at("adam_beta2").get<double>();
  options.techniques.max_grad_norm = json.at("max_grad_norm").get<double>();
  TrainOptions cut = options;
  cut.data.micro_batch_size = 1;
  cut.techniques.pins = {{"recompute", "on"}, {"chunked-loss", "13"}, {"fused-optimizer", "off"}};
  for (const TrainOptions& chosen : {options, cut}) {
    TrainingRun run(golden_, chosen);
    for (const Json& row : json.at("fp32")) {
      const double loss = row.at("loss").get<double>();
      EXPECT_NEAR(run.step().loss, loss, 1e-5 * loss) << "step " << row.at("step");
    }
  }
}

// Rows of several lengths, and the loss that balances the experts over their tokens.
class BalancedExperts : public Experts {
 protected:
  void SetUp() override {
    Experts::SetUp();
    expected_ = read_json(golden_.folder / "balanced.json");
    golden_.model.spec.experts.balance = expected_.at("router_aux_loss_coef").get<double>();
    golden_.lengths = expected_.at("lengths").get<std::vector<int64_t>>();
    golden_.targets = 0;
    for (size_t row = 0; row < golden_.lengths.size(); ++row) {
      const auto padding = static_cast<std::ptrdiff_t>(golden_.lengths[row]);
      std::fill(golden_.ids[row].begin() + padding, golden_.ids[row].end(), 0);
      std::vector<int32_t>& labels = golden_.labels[row];
      std::fill(labels.begin() + padding, labels.end(), -100);
      golden_.targets += std::count_if(labels.begin() + 1, labels.end(), [](int32_t label) { return label >= 0; });
    }
    options_ = plain_options(golden_);
    options_.schedule.learning_rate = expected_.at("learning_rate").get<double>();
    options_.optimizer.weight_decay = 0;
    options_.optimizer.adam_beta2 = 0.95;
  }
  Json expected_;
  TrainOptions options_;
};

TEST_P(BalancedExperts, LossesAreTransformers) {
  TrainOptions redone = options_;
  redone.techniques.pins = {{"recompute", "on"}, {"chunked-loss", "13"}, {"fused-optimizer", "off"}};
  for (const TrainOptions& chosen : {options_, redone}) {
    TrainingRun run(golden_, chosen);
    for (const Json& step : expected_.at("steps")) {
      const double loss = step.at("loss").get<double>(), norm = step.at("gradient_norm").get<double>();
      const StepOutcome outcome = run.step();
      EXPECT_NEAR(outcome.loss, loss, 1e-5 * loss);
      EXPECT_NEAR(outcome.gradient_norm, norm, 1e-4 * norm);
    }
  }
}

// Evaluation has only the next-token loss.
TEST_P(BalancedExperts, EvaluationLeavesTheBalanceOut) {
  const Json first = expected_.at("steps").at(0);
  options_.schedule.learning_rate = 0;
  TrainingRun run(golden_, options_);
  EXPECT_NEAR(run.evaluate(),
              first.at("loss").get<double>() - golden_.model.spec.experts.balance * first.at("balance").get<double>(),
              1e-5);
}

TEST_P(BalancedExperts, TheMicroBatchIsTheGlobalBatchUnlessItIsPinned) {
  options_.data.micro_batch_size = 0;
  EXPECT_EQ(TrainingRun(golden_, options_).plan().choices.micro_batch, golden_.rows());
  options_.data.micro_batch_size = 2;
  TrainingRun halves(golden_, options_);
  EXPECT_EQ(halves.plan().choices.micro_batch, 2);
  const double loss = expected_.at("steps").at(0).at("loss").get<double>();
  const double found = halves.step().loss;
  EXPECT_NEAR(found, loss, 0.1 * loss);
  EXPECT_NE(found, loss);
}

INSTANTIATE_TEST_SUITE_P(Families, BalancedExperts, testing::Values("mixtral", "qwen3_moe"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Experts, FilesHaveOneTensorPerExpert) {
  Training training(golden_);
  const ScratchFolder scratch(std::string("experts-") + GetParam());
  save_tensors(*training.executor, Role::parameter, StoredType::f32, scratch.path / "model.safetensors");
  const SafetensorsFile before = SafetensorsFile::open(golden_.folder / "model" / "model.safetensors");
  const SafetensorsFile after = SafetensorsFile::open(scratch.path / "model.safetensors");
  ASSERT_EQ(after.tensors().size(), before.tensors().size());
  for (const auto& [name, tensor] : before.tensors()) {
    ASSERT_NE(after.find(name), nullptr) << name;
    EXPECT_EQ(after.find(name)->shape, tensor.shape) << name;
    EXPECT_EQ(read_floats(after, name), read_floats(before, name)) << name;
  }
}

TEST_P(Experts, FreshWeightsLoadAndExpertsDiffer) {
  const ScratchFolder scratch(std::string("fresh-") + GetParam());
  FreshModelOptions fresh;
  fresh.config = golden_.folder / "model" / "config.json";
  fresh.output_dir = scratch.path / "made";
  fresh.tokenizer = "bytes";
  Json config = read_json(fresh.config);
  config["vocab_size"] = 300;
  write_text_durably(scratch.path / "config.json", config.dump());
  fresh.config = scratch.path / "config.json";
  write_fresh_model(fresh);
  const ModelFiles made = open_model(fresh.output_dir);
  const SafetensorsSet files = SafetensorsSet::open(fresh.output_dir);
  EXPECT_NO_THROW(check_weights(made.spec, files));
  const std::string name = made.spec.name("expert_gate", 0);
  const auto expert = [&](const char* index) {
    std::string part = name;
    std::vector<float> values(static_cast<size_t>(made.spec.experts.intermediate * made.spec.hidden));
    read_floats(files, part.replace(part.find('*'), 1, index), 0, values);
    return values;
  };
  EXPECT_NE(expert("0"), expert("1"));
}

TEST_P(Experts, AMissingExpertIsNamed) {
  ModelSpec more = golden_.model.spec;
  ++more.experts.count;
  try {
    check_weights(more, SafetensorsSet::open(golden_.model.directory));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'model.layers.0."), std::string::npos) << error.what();
  }
}

TEST_P(Experts, FrozenExpertsLeaveTheOthersGradientsAsTheyAre) {
  TrainOptions options = plain_options(golden_);
  const StepOutcome all = TrainingRun(golden_, options).step();
  options.techniques.freeze = {"experts"};
  TrainingRun part(golden_, options);
  const StepOutcome some = part.step();
  EXPECT_EQ(some.loss, all.loss);
  EXPECT_LT(some.gradients.size(), all.gradients.size());
  for (const auto& [name, gradient] : some.gradients) {
    EXPECT_EQ(name.find(".experts."), std::string::npos) << name;
    EXPECT_EQ(gradient, all.gradients.at(name)) << name;
  }
  options.techniques.freeze = {"experts.0"};
  EXPECT_THROW(TrainingRun(golden_, options), Error) << "experts train together";
}

TEST_P(Experts, AdaptersOfAttentionTrainBesideThem) {
  TrainOptions options = plain_options(golden_);
  options.schedule.learning_rate = 1e-2;
  const double before = TrainingRun(golden_, options).step().loss;
  options.techniques.lora.rank = 4;
  options.techniques.lora.targets = {"q_proj", "k_proj", "v_proj", "o_proj"};
  TrainingRun run(golden_, options);
  EXPECT_EQ(run.step().loss, before);
  const StepOutcome second = run.step();
  EXPECT_LT(second.loss, before);
  std::set<std::string> modules;
  for (const auto& [name, gradient] : second.gradients) {
    EXPECT_NE(name.find(".lora_"), std::string::npos) << name;
    EXPECT_EQ(name.find(".experts."), std::string::npos) << name;
    EXPECT_NE(name.find(".self_attn."), std::string::npos) << name;
    modules.insert(name);
  }
  EXPECT_GT(modules.size(), 8u);
  options.techniques.pins["recompute"] = "block-input";
  TrainingRun recomputed(golden_, options);
  recomputed.step();
  EXPECT_EQ(recomputed.step().loss, second.loss);
}

TEST_P(Experts, TrainWithWeightsInBf16) {
  TrainOptions options = plain_options(golden_);
  options.techniques.precision = "bf16-true";
  options.schedule.learning_rate = 3e-3;
  TrainingRun run(golden_, options);
  options.techniques.pins["recompute"] = "block-input";
  TrainingRun recomputed(golden_, options);
  double loss = run.step().loss;
  EXPECT_EQ(recomputed.step().loss, loss);
  EXPECT_NEAR(loss, golden_.loss, 0.02 * golden_.loss);
  for (int step = 0; step < 3; ++step) {
    const double next = run.step().loss;
    EXPECT_LT(next, loss);
    EXPECT_EQ(recomputed.step().loss, next);
    loss = next;
  }
}

// Losses, gradients and evaluation are bitwise independent of earlier contents of arena, scratch and padding rows.
TEST_P(Experts, TwoRunsAgreeBitwise) {
  TrainOptions options = plain_options(golden_);
  options.techniques.precision = "bf16-mixed";
  options.schedule.learning_rate = 1e-3;
  options.machine.threads = 2;
  options.data.micro_batch_size = 3;
  TrainingRun first(golden_, options), again(golden_, options);
  for (int step = 0; step < 2; ++step) {
    const StepOutcome a = first.step(), b = again.step();
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.gradients, b.gradients);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Experts, testing::Values("mixtral", "qwen3_moe"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace headroom::test
