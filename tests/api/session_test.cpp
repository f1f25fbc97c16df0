// The public API: plans and numbers equal those of the command line, refusals are exceptions.
#include "headroom/headroom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "../runtime/tiny_run.h"

namespace headroom::api {

// A class of the API is one pointer, so its implementation may change without a change for callers.
static_assert(sizeof(Session) == sizeof(std::shared_ptr<void>) && sizeof(Plan) == sizeof(std::shared_ptr<void>));
static_assert(sizeof(Error) == sizeof(std::runtime_error) + sizeof(std::shared_ptr<void>));
static_assert(sizeof(Refusal) == sizeof(Error) + sizeof(std::shared_ptr<void>));

namespace {

using testing::HasSubstr;

class ApiSession : public testing::Test {
 protected:
  ApiSession() { write_tiny_model(directory_); }
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

TEST_F(ApiSession, TextsTakeTheFormThatTheOptionsName) {
  const Generation choice = session().generate("line ", {{"choice", "yes"}, {"choice", "no, never"}});
  EXPECT_THAT(choice.text, testing::AnyOf("yes", "no, never"));
  EXPECT_EQ(choice.finish_reason, "stop");
  const Options number{{"json_schema", R"({"type":"integer","minimum":10,"maximum":12})"}};
  EXPECT_THAT(session().generate("line ", number).text, testing::AnyOf("10", "11", "12"));
  EXPECT_THAT(session().generate("line ", {{"json-object", "true"}}).text, testing::StartsWith("{"));
  EXPECT_THROW(session().generate("line ", {{"regex", "("}}), Error);
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

// The budget includes the memory of the calling program.
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

TEST_F(ApiSession, MeasuresTheMachineIntoAProfileForPlans) {
  const std::string home = path("cache"), file = path("here.json");
  ::setenv("XDG_CACHE_HOME", home.c_str(), 1);
  double last = 0;
  std::string notes;
  const MachineProfile measured = profile(
      {{"output", file}, {"threads", "1"}}, [&](double share) { last = share; },
      [&](const std::string& text) { notes += text + "\n"; });
  EXPECT_EQ(measured.path, file);
  EXPECT_NEAR(last, 1, 1e-9);
  EXPECT_THAT(notes, HasSubstr("wrote " + file));
  EXPECT_THAT(measured.json, HasSubstr("disk_read_bytes_per_second"));
  EXPECT_FALSE(std::filesystem::is_empty(home));
  EXPECT_THAT(session().plan({{"profile", file}}).json(), HasSubstr("\"profile\": \"this-machine#"));
  EXPECT_THROW(profile({{"device", "null"}}), Error);
  EXPECT_THROW(profile({{"outptu", file}}), Error);
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(ApiSession, PlansForADeviceThatAProfileDescribes) {
  const Plan plan = Session(path("model")).plan({{"memory", "4GiB"}, {"profile", "A100-80GB"}});
  EXPECT_TRUE(plan.feasible());
  EXPECT_THAT(plan.json(), HasSubstr("\"profile\": \"A100-80GB"));
}

TEST_F(ApiSession, AnswersQuestionsAboutPlans) {
  const Answer minimum = session().ask(PlanQuestion::minimum, {{"profile", "cpu-avx2"}});
  EXPECT_THAT(minimum.json, HasSubstr("\"allow\": \"reassociating\""));
  EXPECT_THAT(minimum.json, HasSubstr("headroom plan --model " + path("model")));
  EXPECT_THAT(minimum.text, HasSubstr("data-order"));
  const Answer trains = session().ask(PlanQuestion::minimum, {{"data", path("data.txt")}});
  EXPECT_THAT(trains.json, HasSubstr("headroom train --model"));
  EXPECT_THAT(trains.json, HasSubstr("--output-dir run"));
  EXPECT_THAT(session().ask(PlanQuestion::ladder).json, HasSubstr("\"baseline\""));
  const Answer curve = session().ask(PlanQuestion::curve);
  EXPECT_THAT(curve.json, HasSubstr("\"points\""));
  EXPECT_THAT(curve.text, HasSubstr("<svg"));
  std::string notes;
  Callbacks callbacks;
  callbacks.note = [&](const std::string& text) { notes += text; };
  const Answer measured = session().ask(PlanQuestion::measure, {}, callbacks);
  EXPECT_THAT(measured.json, HasSubstr("\"measured_step_seconds\""));
  EXPECT_FALSE(notes.empty());
  EXPECT_THROW(session("20MiB").ask(PlanQuestion::measure), Error);
}

TEST_F(ApiSession, ComparesModelsAndPlans) {
  const Answer models = suggest_models(path("model"), {{"memory", "128MiB"}, {"max-seq-length", "32"}});
  EXPECT_THAT(models.json, HasSubstr(path("model")));
  EXPECT_THAT(models.text, HasSubstr("train from"));
  EXPECT_THROW(suggest_models(path("absent")), Error);
  const auto write = [&](const char* name, const Plan& plan) {
    std::ofstream(path(name)) << plan.json();
    return path(name);
  };
  const std::string a = write("a.json", session().plan()), b = write("b.json", session().plan({{"optim", "sgd"}}));
  EXPECT_THAT(compare_plans(a, b).json, HasSubstr("\"peak_bytes\""));
  EXPECT_THAT(compare_plans(a, b).text, HasSubstr("optimizer"));
  EXPECT_THROW(compare_plans(a, path("data.txt")), Error);
}

// Progress counts to its end, and the function that counts may end the call.
TEST_F(ApiSession, EvaluationsAndQuantisationsTellTheirProgressAndEndWhenAsked) {
  const auto calls = [&](const std::function<void(const Callbacks&)>& call) {
    std::int64_t last = -1, whole = 0;
    Callbacks callbacks;
    callbacks.progress = [&](std::int64_t done, std::int64_t total) {
      EXPECT_EQ(done, last + 1);
      last = done, whole = total;
    };
    call(callbacks);
    EXPECT_EQ(last, whole);
    EXPECT_GT(whole, 1);
    last = -1;
    callbacks.should_stop = [&] { return last == 1; };
    try {
      call(callbacks);
      FAIL() << "was not stopped";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::stopped);
      EXPECT_EQ(error.what(), "stopped after 1 of " + std::to_string(whole));
    }
    callbacks.should_stop = {};
    callbacks.progress = [](std::int64_t, std::int64_t) { throw std::logic_error("mine"); };
    EXPECT_THROW(call(callbacks), std::logic_error);
  };
  calls([&](const Callbacks& callbacks) { session().evaluate({{"data", path("data.txt")}}, callbacks); });
  for (const char* weights : {"int8", "q8_0"}) {
    const std::string out = path("codes");
    calls([&](const Callbacks& callbacks) {
      std::filesystem::remove_all(out);
      quantize(path("model"), out, weights, 0, callbacks);
    });
    EXPECT_FALSE(std::filesystem::exists(out)) << "what was written in part is removed";
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / "."))
      EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::StartsWith("codes")));
  }
}

TEST_F(ApiSession, AMergeTellsItsProgressAndEndsWhenAsked) {
  session().train({{"data", path("data.txt")}, {"output-dir", path("adapter")}, {"max-steps", "1"}, {"lora-r", "2"}});
  std::int64_t last = -1, whole = 0;
  Callbacks callbacks;
  callbacks.progress = [&](std::int64_t done, std::int64_t total) { last = done, whole = total; };
  callbacks.should_stop = [&] { return last == 2; };
  EXPECT_THROW(merge(path("model"), path("adapter"), path("merged"), "float32", 0, callbacks), Error);
  EXPECT_EQ(last, 2);
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "."))
    EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::StartsWith("merged")));
  callbacks.should_stop = {};
  merge(path("model"), path("adapter"), path("merged"), "float32", 0, callbacks);
  EXPECT_GT(whole, 2);
  EXPECT_EQ(last, whole);
  EXPECT_TRUE(std::filesystem::exists(path("merged/model.safetensors")));
}

TEST_F(ApiSession, QuantizesAModel) {
  quantize(path("model"), path("codes"));
  const Session coded(path("codes"), {{"memory", "128MiB"}});
  EXPECT_EQ(coded.generate("line ", {{"max-new-tokens", "4"}}).ids.size(), 4);
  EXPECT_THROW(quantize(path("model"), path("other"), "nf3"), Error);
  EXPECT_THROW(quantize(path("model"), path("small"), "int8", 1 << 20), Error);
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
