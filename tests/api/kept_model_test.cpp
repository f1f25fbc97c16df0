// The model that a session keeps from one generate() to the next: used again with the same bits, freed where the budget
// or the files ask for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "../runtime/tiny_run.h"
#include "api/parser.h"
#include "arguments/inference_options.h"
#include "engine/generate.h"
#include "headroom/headroom.h"

namespace headroom::api {
namespace {

// 63 MB of weights.
constexpr const char* kLargeConfig =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":258,"hidden_size":512,
"intermediate_size":2048,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,
"rms_norm_eps":1e-5,"rope_theta":10000.0,"hidden_act":"silu","tie_word_embeddings":true,"torch_dtype":"float32"})";

const Options kGreedy{{"temperature", "0"}, {"max-new-tokens", "8"}};

class KeptModel : public testing::Test {
 protected:
  KeptModel() { write_tiny_model(directory_); }
  std::string path(const char* name) const { return (directory_ / name).string(); }
  Session session(const char* memory = "256MiB", Options more = {}) const {
    more.insert(more.end(), {{"memory", memory}, {"threads", "1"}});
    return Session(path("model"), std::move(more));
  }
  // Generates, and counts in plans_ how often a model was planned for it.
  Generation generate(const Session& by, const std::string& prompt, const Options& options = kGreedy) {
    Callbacks callbacks;
    callbacks.planned = [&](const Plan& plan) {
      ++plans_;
      EXPECT_TRUE(!plan.feasible() || plan.peak_bytes() <= plan.budget_bytes());
    };
    return by.generate(prompt, options, {}, callbacks);
  }
  // As the command line generates: planned for this text alone.
  headroom::Generation alone(const std::string& prompt, const Options& options) const {
    Parser<InferenceArguments> parser(add_generate_options);
    parse(parser, path("model"), {{"memory", "128MiB"}, {"threads", "1"}}, options);
    parser.arguments.generation.prompt.prompt = prompt;
    return generate_text(parser.arguments.options, parser.arguments.generation);
  }

  TemporaryDirectory directory_;
  int plans_ = 0;
};

TEST_F(KeptModel, IsLoadedOnce) {
  const Session session = this->session();
  const Generation first = generate(session, "line ");
  const Generation again = generate(session, "line ");
  EXPECT_EQ(plans_, 1);
  EXPECT_EQ(again.ids, first.ids);
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(again.finish_reason, first.finish_reason);
}

// Prompts that are read in chunks of each size, samplings, stops, limits and grammars: none of them is the model's.
TEST_F(KeptModel, GivesEveryTextAsAModelThatIsLoadedForItAlone) {
  const std::string text = "line 1764 of a text that is learned byte by byte, as";
  const Session session = this->session();
  for (const size_t length : {5, 1, 2, 3, 7, 8, 17, 33, 50}) {
    const std::string prompt = text.substr(0, length);
    for (const Options& options : {kGreedy, Options{{"max-new-tokens", "6"}, {"seed", "7"}, {"top-k", "5"}},
                                   Options{{"regex", "[a-c]{4}"}, {"seed", "3"}}, Options{{"stop", "e"}}}) {
      const Generation kept = generate(session, prompt, options);
      const headroom::Generation fresh = alone(prompt, options);
      EXPECT_EQ(kept.ids, fresh.ids) << prompt;
      EXPECT_EQ(kept.finish_reason, fresh.stopped ? "stop" : "length");
    }
  }
  EXPECT_EQ(plans_, 1);
}

TEST_F(KeptModel, IsPlannedAgainWhereOptionsChangeThePlan) {
  const Session session = this->session();
  const Generation first = generate(session, "line ");
  generate(session, "line ", {{"precision", "bf16-true"}});
  EXPECT_EQ(plans_, 2);
  generate(session, "line ", {{"memory", "192MiB"}});
  EXPECT_EQ(plans_, 3);
  EXPECT_EQ(generate(session, "line ").ids, first.ids);
  EXPECT_EQ(plans_, 4);
}

TEST_F(KeptModel, IsReadAgainWhenItsFilesWereWritten) {
  const Session session = this->session();
  const Generation first = generate(session, "line ");
  const std::string out = path("trained");
  this->session().train({{"data", path("data.txt")},
                         {"output-dir", out},
                         {"max-seq-length", "32"},
                         {"max-steps", "3"},
                         {"learning-rate", "1e-2"}});
  const std::filesystem::path weights = directory_ / "model/model.safetensors";
  std::filesystem::copy_file(out + "/model.safetensors", weights, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::last_write_time(weights, std::filesystem::last_write_time(weights) + std::chrono::seconds(2));
  const Generation trained = generate(session, "line ");
  EXPECT_EQ(plans_, 2);
  EXPECT_EQ(trained.ids, generate(Session(out, {{"memory", "256MiB"}, {"threads", "1"}}), "line ").ids);
}

// Every other call of the session frees it, and a model that was kept is not the caller's in the next call's budget.
TEST_F(KeptModel, IsFreedBeforeOtherCalls) {
  const Session session = this->session();
  const Options data{{"data", path("data.txt")}, {"max-seq-length", "32"}};
  const auto expect_freed = [&](const char* by, const std::function<void()>& call) {
    call();
    const int before = plans_;
    generate(session, "line ");
    EXPECT_EQ(plans_, before + 1) << by;
  };
  generate(session, "line ");
  const std::int64_t least = session.plan(data).minimum_bytes();
  generate(session, "line ");
  expect_freed("plan", [&] {
    EXPECT_NEAR(static_cast<double>(session.plan(data).minimum_bytes()), static_cast<double>(least), 3 << 20);
  });
  expect_freed("evaluate", [&] { session.evaluate(data); });
  expect_freed("train", [&] {
    std::int64_t peak = 0, most = 0;
    Callbacks callbacks;
    callbacks.planned = [&](const Plan& plan) { peak = plan.peak_bytes(); };
    callbacks.step = [&](const Step& step) { most = std::max(most, step.resident_bytes); };
    Options run = data;
    run.insert(run.end(), {{"output-dir", path("out")}, {"max-steps", "2"}});
    session.train(run, callbacks);
    EXPECT_LE(most, peak);
  });
  expect_freed("release", [&] { session.release(); });
  generate(session, "line ");
  EXPECT_EQ(plans_, 6) << "kept again";
}

// Another session's budget does not count what this one keeps.
TEST_F(KeptModel, IsNotTheCallersMemory) {
  directory_.write("large.json", kLargeConfig);
  write_fresh_model({directory_ / "large.json", "bytes", directory_ / "large", 7, "float32"});
  const Session other = this->session();
  const std::int64_t alone = other.plan().minimum_bytes();
  Session large(path("large"), {{"memory", "1GiB"}, {"threads", "1"}});
  generate(large, "line ");
  const auto more = [&] { return static_cast<double>(other.plan().minimum_bytes() - alone); };
  EXPECT_NEAR(more(), 0, 4 << 20);
  std::vector<char> held(64 << 20, 'x');
  EXPECT_NEAR(more(), 64 << 20, 4 << 20) << "the caller's memory counts as before";
  large = other;
  EXPECT_NEAR(more(), 64 << 20, 4 << 20) << "and after the model is freed";
  EXPECT_EQ(held[held.size() / 2], 'x');
}

// The budget holds the model and the caller's memory. If the caller takes more, it is planned again, or refused.
TEST_F(KeptModel, LeavesWhenTheCallerTakesItsRoom) {
  const Session session = this->session();
  const Generation first = generate(session, "line ");
  {
    std::vector<char> held(256 << 20, 'x');
    EXPECT_EQ(held[held.size() / 2], 'x');
    EXPECT_THROW(generate(session, "line "), Refusal);
  }
  EXPECT_EQ(generate(session, "line ").ids, first.ids);
}

// A budget without room for the programs of all lengths holds a plan for each prompt alone.
TEST_F(KeptModel, OfATightBudgetGivesTheSameTexts) {
  std::int64_t least = 0;
  try {
    session("20MiB").generate("line ", kGreedy);
    FAIL() << "20 MiB are enough";
  } catch (const Refusal& refusal) {
    least = refusal.minimum_bytes();
  }
  const Session tight = session(std::to_string(least + (4 << 20)).c_str());
  const Generation first = generate(tight, "line ");
  const Generation longer = generate(tight, "line 1 of a text");
  EXPECT_EQ(longer.ids, alone("line 1 of a text", kGreedy).ids);
  EXPECT_EQ(generate(tight, "line ").ids, first.ids);
}

TEST_F(KeptModel, SurvivesAMistakeInTheNextPrompt) {
  const Session session = this->session();
  const Generation first = generate(session, "line ");
  EXPECT_THROW(generate(session, "line ", {{"regex", "("}}), Error);
  EXPECT_THROW(generate(session, "\xff"), Error);
  EXPECT_THROW(generate(session, std::string(100, 'x')), Error) << "more than the model's positions";
  EXPECT_EQ(generate(session, "line ").ids, first.ids);
  EXPECT_EQ(plans_, 1);
}

TEST_F(KeptModel, IsGivenUpWhenACallbackThrows) {
  const Session session = this->session();
  const Generation first = generate(session, "line ");
  const auto throws = [](std::string_view) -> bool { throw std::logic_error("mine"); };
  EXPECT_THROW(session.generate("line ", kGreedy, throws), std::logic_error);
  EXPECT_EQ(generate(session, "line ").ids, first.ids);
  EXPECT_EQ(plans_, 2);
}

// Two texts of one session at the same time: the second loads for itself. A thread may go on with the model of another.
TEST_F(KeptModel, IsUsedByOneCallAtATime) {
  const Session session = this->session();
  const Generation first = generate(session, "line ");
  std::mutex mutex;
  std::condition_variable both;
  int inside = 0;
  const auto meets = [&](bool& met) {
    std::unique_lock lock(mutex);
    if (std::exchange(met, true)) return true;
    ++inside;
    both.notify_all();
    return both.wait_for(lock, std::chrono::seconds(30), [&] { return inside == 2; });
  };
  Generation beside[2];
  bool met[2] = {};
  std::thread other(
      [&] { beside[1] = session.generate("line ", kGreedy, [&](std::string_view) { return meets(met[1]); }); });
  beside[0] = session.generate("line ", kGreedy, [&](std::string_view) { return meets(met[0]); });
  other.join();
  for (const Generation& text : beside) EXPECT_EQ(text.ids, first.ids);
  std::thread([&] { EXPECT_EQ(generate(session, "line ").ids, first.ids); }).join();
  EXPECT_EQ(generate(session, "line ").ids, first.ids);
  EXPECT_EQ(plans_, 1) << "the last of the two kept its model";
}

}  // namespace
}  // namespace headroom::api
