// The public API: the command line's plans and numbers, refusals as exceptions, sessions beside each other.
#include "headroom/headroom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "../formats/temporary_directory.h"
#include "base/process_memory.h"
#include "train/fresh_model.h"

namespace headroom::api {
namespace {

using testing::HasSubstr;

constexpr const char* kConfig =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":258,"hidden_size":32,
"intermediate_size":64,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,
"rms_norm_eps":1e-5,"rope_theta":10000.0,"hidden_act":"silu","tie_word_embeddings":true,"initializer_range":0.2,"torch_dtype":"float32"})";

class ApiSession : public testing::Test {
 protected:
  ApiSession() {
    directory_.write("config.json", kConfig);
    write_fresh_model({directory_ / "config.json", "bytes", directory_ / "model", 7, "float32"});
    std::string text;
    for (int line = 0; line < 40; ++line) text += "line " + std::to_string(line) + " of a text\n";
    directory_.write("data.txt", text);
  }
  std::string path(const char* name) const { return (directory_ / name).string(); }
  Session session(const char* memory = "128MiB") const {
    return Session(path("model"),
                   {{"memory", memory}, {"threads", "1"}, {"max_seq_length", "32"}, {"max-new-tokens", "8"}});
  }
  Options run(const char* out) const {
    return {{"data", path("data.txt")}, {"output-dir", path(out)}, {"max-steps", "3"}, {"learning-rate", "1e-2"}};
  }
  // Losses of a run.
  std::vector<double> train(const Session& by, const char* out) const {
    std::vector<double> losses;
    Callbacks callbacks;
    callbacks.step = [&](const Step& step) { losses.push_back(step.loss); };
    by.train(run(out), callbacks);
    return losses;
  }

  TemporaryDirectory directory_;
};

TEST_F(ApiSession, PlansTrainsEvaluatesAndGenerates) {
  const Session session = this->session();
  const Plan plan = session.plan(run("out"));
  EXPECT_TRUE(plan.feasible());
  EXPECT_EQ(plan.budget_bytes(), 128 << 20);
  EXPECT_GE(plan.peak_bytes(), plan.arena_bytes() + plan.process_bytes());
  EXPECT_THAT(plan.json(), HasSubstr("\"arena_bytes\""));
  EXPECT_THAT(plan.explanation(), HasSubstr("optimizer states"));
  const std::vector<double> losses = train(session, "out");
  ASSERT_EQ(losses.size(), 3);
  EXPECT_LT(losses.back(), losses.front());
  const Session trained(path("out"), {{"memory", "128MiB"}});
  const Evaluation evaluation = trained.evaluate({{"data", path("data.txt")}, {"max-seq-length", "32"}});
  EXPECT_GT(evaluation.targets, 100);
  EXPECT_NEAR(evaluation.perplexity, std::exp(evaluation.loss), 1e-9);
  std::string streamed;
  const Generation generation = trained.generate("line ", {{"max-new-tokens", "8"}}, [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  EXPECT_EQ(generation.text, streamed);
  EXPECT_EQ(generation.ids.size(), 8);
  EXPECT_EQ(generation.finish_reason, "length");
}

TEST_F(ApiSession, ABudgetThatHoldsNoPlanIsARefusalWithItsFigures) {
  const Session small = session("20MiB");
  const Plan plan = small.plan();
  EXPECT_FALSE(plan.feasible());
  try {
    small.train(run("out"));
    FAIL() << "nothing was thrown";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.kind(), ErrorKind::does_not_fit);
    EXPECT_EQ(refusal.budget_bytes(), 20 << 20);
    EXPECT_GT(refusal.minimum_bytes(), 20 << 20);
    EXPECT_THAT(refusal.remedy(), HasSubstr(std::to_string(refusal.minimum_bytes())));
  }
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  EXPECT_THROW(small.generate("x"), Refusal);
}

// What the program around the engine holds is a part of what the budget holds.
TEST_F(ApiSession, BooksTheCallingProgram) {
  const std::int64_t before = session().plan().minimum_bytes();
  std::vector<char> held(64 << 20, 'x');
  const std::int64_t after = session().plan().minimum_bytes();
  EXPECT_GE(after - before, 63 << 20);
  EXPECT_EQ(held[held.size() / 2], 'x');
}

TEST_F(ApiSession, TheProcessStaysInsideThePlan) {
  const Session session = this->session();
  std::int64_t peak = 0, most = 0;
  Callbacks callbacks;
  callbacks.planned = [&](const Plan& plan) { peak = plan.peak_bytes(); };
  callbacks.step = [&](const Step& step) { most = std::max(most, step.resident_bytes); };
  session.train(run("out"), callbacks);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, peak);
}

TEST_F(ApiSession, WrongOptionsAreErrorsThatNameThem) {
  const auto message = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what()) + " | " + error.remedy();
    }
    return std::string();
  };
  EXPECT_THAT(message([&] { Session(path("model"), {{"memry", "1GiB"}}); }), HasSubstr("did you mean 'memory'?"));
  EXPECT_THAT(message([&] { session().plan({{"max-steps", "many"}}); }), HasSubstr("--max-steps many"));
  EXPECT_THAT(message([&] { session().plan({{"temperature", "1"}}); }), HasSubstr("unknown option 'temperature'"));
  EXPECT_THAT(message([&] { session().train(); }), HasSubstr("no training data"));
  EXPECT_THAT(message([&] { Session("absent").plan(); }), HasSubstr("absent"));
}

TEST_F(ApiSession, StopsWhenAskedAndSaves) {
  Callbacks callbacks;
  std::string saved;
  callbacks.should_stop = [] { return true; };
  callbacks.saved = [&](std::int64_t, const std::string& directory) { saved = directory; };
  const Training training = session().train(run("out"), callbacks);
  EXPECT_TRUE(training.stopped);
  EXPECT_EQ(training.steps, 1);
  EXPECT_TRUE(std::filesystem::exists(saved));
}

TEST_F(ApiSession, WhatACallbackThrowsPasses) {
  Callbacks callbacks;
  callbacks.step = [](const Step&) { throw std::runtime_error("mine"); };
  EXPECT_THROW(session().train(run("out"), callbacks), std::runtime_error);
  EXPECT_EQ(train(session(), "again").size(), 3) << "the engine is as it was";
}

// Two budgets, one after the other and at the same time: the losses of each alone, each inside its plan.
TEST_F(ApiSession, SessionsBesideEachOtherKeepTheirPromises) {
  const Session roomy = session(),
                tight(
                    path("model"),
                    {{"memory", "128MiB"}, {"threads", "1"}, {"max_seq_length", "32"}, {"technique", "recompute=on"}});
  const std::vector<double> first = train(roomy, "first"), second = train(tight, "second");
  std::vector<double> a, b;
  std::thread other([&] { b = train(tight, "second-again"); });
  a = train(roomy, "first-again");
  other.join();
  EXPECT_EQ(a, first);
  EXPECT_EQ(b, second);
}

TEST(Api, ExplainsAnError) {
  Question question;
  question.text =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB "
      "of which 1.12 GiB is free. Process 1234 has 22.56 GiB memory in use.";
  const Diagnosis diagnosis = explain(question);
  EXPECT_THAT(diagnosis.screen, HasSubstr("2.00 GiB"));
  EXPECT_THAT(diagnosis.json, HasSubstr("\"requested_bytes\""));
  EXPECT_THROW(explain({}), Error);
}

TEST_F(ApiSession, DescribesAModel) {
  const ModelFacts facts = describe_model(path("model"));
  EXPECT_EQ(facts.family, "llama");
  EXPECT_EQ(facts.layers, 3);
  EXPECT_EQ(facts.vocabulary, 258);
  EXPECT_GT(facts.parameters, 10000);
}

}  // namespace
}  // namespace headroom::api
