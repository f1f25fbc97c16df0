// Several sessions in one process, one after another and at the same time: each keeps its budget, and the process's
// constant part is counted once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "../runtime/tiny_run.h"
#include "headroom/headroom.h"

namespace headroom::api {
namespace {

using nlohmann::json;

// Holds each of `count` threads until all have arrived, for at most half a minute.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  bool meet() {
    std::unique_lock lock(mutex_);
    --missing_;
    all_.notify_all();
    return all_.wait_for(lock, std::chrono::seconds(30), [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int missing_;
};

struct Outcome {
  std::vector<double> losses;
  json plan, end;                  // plan.json, run.json
  std::int64_t most_resident = 0;  // of the process, at the steps
  bool met = true;
};

// The part of a budget that all sessions of the process share; it is in each plan.
std::int64_t shared_bytes(const json& plan) {
  return plan["process"]["code"].get<std::int64_t>() + plan["process"]["caller"].get<std::int64_t>();
}

class Sessions : public testing::Test {
 protected:
  Sessions() { write_tiny_model(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  Session session(const char* memory, const char* threads, Options more = {}) const {
    more.insert(more.end(), {{"memory", memory}, {"threads", threads}, {"max-seq-length", "32"}});
    return Session(path("model"), std::move(more));
  }
  // Two sessions with different budgets, teams and plans.
  Session roomy() const { return session("128MiB", "2"); }
  Session tight() const { return session("112MiB", "1", {{"technique", "recompute=on"}, {"global-batch-size", "6"}}); }

  Options options(const std::string& out) const {
    return {{"data", path("data.txt")}, {"output-dir", path(out)}, {"max-steps", "6"}, {"learning-rate", "1e-2"}};
  }
  Outcome train(const Session& by, const std::string& out, Meeting* meeting = nullptr) const {
    Outcome run;
    Callbacks callbacks;
    callbacks.step = [&](const Step& step) {
      run.losses.push_back(step.loss);
      run.most_resident = std::max(run.most_resident, step.resident_bytes);
      if (meeting && step.step == 2) run.met = meeting->meet();
    };
    by.train(options(out), callbacks);
    std::ifstream(path(out + "/plan.json")) >> run.plan;
    std::ifstream(path(out + "/run.json")) >> run.end;
    return run;
  }

  TemporaryDirectory directory_;
};

// Both train at the same time: they meet between the second and the third step.
TEST_F(Sessions, AtTheSameTimeTrainAsAlone) {
  const Outcome a = train(roomy(), "a"), b = train(tight(), "b");
  ASSERT_NE(a.losses, b.losses);
  Meeting meeting(2);
  Outcome beside_a, beside_b;
  std::thread other([&] { beside_b = train(tight(), "beside-b", &meeting); });
  beside_a = train(roomy(), "beside-a", &meeting);
  other.join();
  ASSERT_TRUE(beside_a.met && beside_b.met) << "one waited for the other's end";
  EXPECT_EQ(beside_a.losses, a.losses);
  EXPECT_EQ(beside_b.losses, b.losses);
  for (const Outcome* run : {&beside_a, &beside_b}) {
    EXPECT_GT(run->end["arena_measured_bytes"], 0);
    EXPECT_LE(run->end["arena_measured_bytes"], run->end["arena_planned_bytes"]);
    EXPECT_EQ(run->end["arena_planned_bytes"], run->plan["arena_bytes"]);
    EXPECT_LE(run->plan["peak_bytes"], run->plan["budget_bytes"]);
  }
}

// Both plans count the process's constant part, which exists once: the process stays within their sum minus that part.
TEST_F(Sessions, AtTheSameTimeTheProcessHoldsItsConstantPartOnce) {
  Meeting meeting(2);
  Outcome a, b;
  std::thread other([&] { b = train(tight(), "b", &meeting); });
  a = train(roomy(), "a", &meeting);
  other.join();
  ASSERT_TRUE(a.met && b.met);
  const auto peak = [](const Outcome& run) { return run.plan["peak_bytes"].get<std::int64_t>(); };
  const std::int64_t once = std::min(shared_bytes(a.plan), shared_bytes(b.plan));
  EXPECT_LE(std::max(a.most_resident, b.most_resident), peak(a) + peak(b) - once);
}

// A session that starts while another runs does not count the other's memory in its own budget.
TEST_F(Sessions, ABudgetDoesNotCountTheOtherSession) {
  const std::int64_t alone = roomy().plan(options("out")).minimum_bytes();
  std::int64_t beside = 0;
  Callbacks callbacks;
  callbacks.step = [&](const Step& step) {
    if (step.step == 3) beside = roomy().plan(options("out")).minimum_bytes();
  };
  const Session large = session("1GiB", "1", {{"global-batch-size", "64"}, {"micro-batch-size", "64"}});
  large.train(options("large"), callbacks);
  EXPECT_GT(beside, 0);
  EXPECT_NEAR(static_cast<double>(beside), static_cast<double>(alone), 4 << 20);
}

TEST_F(Sessions, OneAfterTheOtherCountTheConstantPartOnce) {
  const std::int64_t first = roomy().plan(options("out")).minimum_bytes();
  for (int run = 0; run < 3; ++run) train(run % 2 == 0 ? roomy() : tight(), "run-" + std::to_string(run));
  const std::int64_t last = roomy().plan(options("out")).minimum_bytes();
  EXPECT_NEAR(static_cast<double>(last), static_cast<double>(first), 2 << 20)
      << "what the engine has left resident is the caller's again";
  const Outcome again = train(roomy(), "again");
  EXPECT_LE(again.most_resident, again.plan["peak_bytes"].get<std::int64_t>());
}

TEST_F(Sessions, GenerateAndEvaluateBesideATraining) {
  const Session reader = session("96MiB", "1", {{"max-new-tokens", "12"}, {"temperature", "0"}});
  const Generation text = reader.generate("line ");
  const Evaluation loss = reader.evaluate({{"data", path("data.txt")}});
  const Outcome alone = train(roomy(), "alone");
  Meeting meeting(3);
  Outcome beside;
  Generation text_beside;
  Evaluation loss_beside;
  bool met = true;
  std::thread trains([&] { beside = train(roomy(), "beside", &meeting); });
  std::thread evaluates([&] {
    met = meeting.meet() && met;
    loss_beside = reader.evaluate({{"data", path("data.txt")}});
  });
  bool first = true;
  text_beside = reader.generate("line ", {}, [&](std::string_view) {
    if (std::exchange(first, false)) met = meeting.meet() && met;
    return true;
  });
  trains.join();
  evaluates.join();
  EXPECT_TRUE(met && beside.met);
  EXPECT_EQ(text_beside.ids, text.ids);
  EXPECT_EQ(loss_beside.loss, loss.loss);
  EXPECT_EQ(beside.losses, alone.losses);
}

// A refusal, an exception of a callback or a stop request affects only its own session.
TEST_F(Sessions, EndEachForItself) {
  const Outcome alone = train(roomy(), "alone");
  Meeting meeting(2);
  Outcome run;
  std::thread other([&] { run = train(roomy(), "beside", &meeting); });
  EXPECT_TRUE(meeting.meet());
  EXPECT_THROW(session("20MiB", "1").train(options("refused")), Refusal);
  Callbacks throws, stops;
  throws.step = [](const Step&) { throw std::runtime_error("mine"); };
  EXPECT_THROW(tight().train(options("throws"), throws), std::runtime_error);
  stops.should_stop = [] { return true; };
  EXPECT_TRUE(tight().train(options("stops"), stops).stopped);
  other.join();
  EXPECT_EQ(run.losses, alone.losses);
  EXPECT_EQ(run.end["steps"], 6);
}

}  // namespace
}  // namespace headroom::api
