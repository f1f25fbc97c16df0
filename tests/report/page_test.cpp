// The page of a run: well-formed, complete, bounded; every damaged file is named with the position.
#include "report/page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "report/live_view.h"
#include "well_formed.h"

namespace headroom::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlan = R"({"feasible": true, "budget_bytes": 209715200, "peak_bytes": 118993408,
 "minimum_bytes": 30517696, "arena_bytes": 96535040, "process_bytes": 22458368,
 "phases": [{"name": "train_step", "peak_bytes": 118993355}],
 "breakdown": {"weights": 1, "gradients": 2, "optimizer": 3, "activations": 4, "workspace": 5, "data": 6, "alignment": 7},
 "process": {"code": 22020096, "tokenizer": 0, "data": 0, "kernels": 0, "planner": 204800, "page_tables": 233472},
 "techniques": [{"name": "recompute", "kind": "exact", "value": "5 x keep-all", "saves_bytes": 1048576,
                 "costs_seconds": 0.25, "why": "every <activation> fits & more"}],
 "micro_batch_size": 8, "gradient_accumulation_steps": 2, "max_seq_length": 512, "recompute": "5 x keep-all",
 "precision": "32-true", "predicted_step_seconds": 0.067, "parameters": 260032, "model": "llama", "profile": "p#1",
 "threads": 2})";
constexpr const char* kMemory = R"({"arena_bytes": 96535040, "process_bytes": 22458368, "program": "train_step",
 "instructions": 3, "classes": [],
 "points": [[0, "forward", 0, 100, 0, 50, 10, 0, 1, 0], [1, "backward", 0, 100, 70, 50, 80, 5, 1, 2],
            [2, "update", -1, 100, 70, 50, 0, 0, 1, 0]],
 "peak": {"instruction": 1, "op": "linear_grad", "layer": 0, "stage": "backward", "bytes": [100, 70, 50, 80, 5, 1, 2]},
 "groups": [{"name": "<script>alert(1)</script>", "class": "weights", "count": 3, "bytes": 100, "first_layer": 0,
             "last_layer": 2}],
 "tensors": [{"name": "w\u0000\u0007", "class": "weights", "layer": 1, "bytes": 50, "offset": 0, "made": 0, "freed": 3}],
 "layers": [[-1, 50, 0, 0, 0, 0, 0, 0], [0, 50, 70, 50, 80, 5, 1, 2]],
 "frontier": [{"peak_bytes": 30517696, "packed": true, "step_seconds": 0.2, "setting": "micro-batch 1"},
              {"peak_bytes": 118993408, "packed": true, "step_seconds": 0.067, "setting": "micro-batch 8"}]})";
constexpr const char* kMeasured =
    R"({"instructions": 3, "micro_batches": 1, "points": [[0, 1000000, 0.01], [1, 2000000, 0.02], [2, 2000000, 0.005]]})";
constexpr const char* kLine =
    R"({"step": 1, "loss": 4.5, "grad_norm": 1.5, "learning_rate": 1e-4, "tokens": 4096, "seconds": 0.5, "tokens_per_second": 8192, "resident_bytes": 100000000})"
    "\n";

class Page : public testing::Test {
 protected:
  void SetUp() override {
    directory = fs::temp_directory_path() / ("headroom-report-" + std::to_string(::getpid()) + "<&\"'>");
    fs::remove_all(directory);
    fs::create_directories(directory);
    write("plan.json", kPlan);
    write("memory.json", kMemory);
    write("measured.json", kMeasured);
    write("metrics.jsonl", std::string(kLine) + "{\"step\": 1, \"eval_loss\": 4.25, \"eval_perplexity\": 70.1}\n");
  }
  void TearDown() override { fs::remove_all(directory); }

  void write(const char* name, const std::string& text) const {
    std::ofstream(directory / name, std::ios::binary) << text;
  }
  std::string made() const { return page(read_run(directory)); }

  void expect_refused(const std::vector<std::string>& parts) const {
    try {
      made();
      ADD_FAILURE() << "not refused: " << parts[0];
    } catch (const Error& e) {
      for (const std::string& part : parts) EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
      EXPECT_FALSE(e.remedy().empty());
    }
  }

  fs::path directory;
};

TEST_F(Page, IsWellFormedAndComplete) {
  const std::string text = made();
  EXPECT_EQ(malformed(text), "");
  for (const char* part :
       {"Memory of a step", "The peak", "Loss", "Tokens a second", "Techniques", "What another budget would give",
        "Planned and measured", "linear_grad", "saves 1.00 MiB", "costs 250 ms a step", "4.2500", "layers 0 to 2",
        "micro-batch 8", "prefers-color-scheme:dark", "width=device-width"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST_F(Page, NeedsNoNetworkAndNoScript) {
  const std::string text = made();
  for (const char* part : {"<script", "http://", "https://", "url(", "@import", "<link", "<img", "<iframe", "onload"})
    EXPECT_EQ(text.find(part), std::string::npos) << part;
}

TEST_F(Page, EscapesNames) {
  const std::string text = made();
  EXPECT_NE(text.find("&lt;script&gt;alert(1)&lt;/script&gt;"), std::string::npos);
  EXPECT_NE(text.find("every &lt;activation&gt; fits &amp; more"), std::string::npos);
  std::string hostile = kPlan;
  hostile.replace(hostile.find("llama"), 5, "x\\\"><b onclick='y'>\\u001b[2J");
  write("plan.json", hostile);
  EXPECT_EQ(malformed(made()), "");
  hostile = kPlan;
  hostile.replace(hostile.find("llama"), 5, "\xff\xfe\xc0\xaf");  // not UTF-8
  write("plan.json", hostile);
  expect_refused({"plan.json", "malformed JSON"});
}

TEST_F(Page, StaysSmallInALongRun) {
  std::string lines;
  for (int step = 1; step <= 20000; ++step)
    lines += "{\"step\": " + std::to_string(step) + ", \"loss\": " + std::to_string(9.0 - step * 1e-4) +
             ", \"tokens\": 10, \"seconds\": 0.1, \"tokens_per_second\": 100, \"resident_bytes\": 1000000}\n";
  write("metrics.jsonl", lines);
  const report::Run run = read_run(directory);
  EXPECT_EQ(run.metrics.tokens, 200000);
  EXPECT_EQ(run.metrics.last->step, 20000);
  EXPECT_NEAR(run.metrics.loss.most(), 8.9999, 1e-6);
  EXPECT_NEAR(run.metrics.loss.mean(), 9.0 - 1.00005, 1e-3);
  const std::string text = page(run);
  EXPECT_LT(text.size(), size_t{256} << 10);
  EXPECT_EQ(malformed(text), "");
}

TEST_F(Page, DoesWithWhatThereIs) {
  for (const char* name : {"measured.json", "memory.json", "metrics.jsonl"}) {
    fs::remove(directory / name);
    EXPECT_EQ(malformed(made()), "") << name;
  }
  EXPECT_NE(made().find("no memory.json"), std::string::npos);
  fs::remove(directory / "plan.json");
  expect_refused({"plan.json", "holds no run"});
}

TEST_F(Page, NamesTheFileAndThePlaceOfDamage) {
  for (const auto& [name, text] :
       {std::pair{"plan.json", kPlan}, {"memory.json", kMemory}, {"measured.json", kMeasured}}) {
    SCOPED_TRACE(name);
    const std::string whole = text;
    for (size_t size = 0; size + 1 < whole.size(); size += 37) {
      write(name, whole.substr(0, size));
      expect_refused({name, "at byte"});
    }
    write(name, "[]");
    expect_refused({name, "there is no"});
    write(name, std::string(100, '['));
    expect_refused({name, "nested deeper"});
    write(name, std::string("{\0}", 3));
    expect_refused({name, "NUL"});
    write(name, whole);
  }
  const auto damaged = [&](const char* name, std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    write(name, text);
  };
  damaged("plan.json", kPlan, "\"activations\": 4", "\"activations\": -4");
  expect_refused({"plan.json: breakdown.activations", "-4", "0 or more"});
  damaged("plan.json", kPlan, "209715200", "1e400");
  expect_refused({"plan.json"});
  damaged("plan.json", kPlan, "209715200", "99999999999999999999");
  expect_refused({"plan.json: budget_bytes"});
  damaged("plan.json", kPlan, "\"llama\"", "7");
  expect_refused({"plan.json: model is 7", "a text"});
  write("plan.json", kPlan);
  damaged("memory.json", kMemory, "\"backward\", 0, 100", "\"backward\", 0, \"x\"");
  expect_refused({"memory.json: points[1][3]", "\"x\"", "a whole number"});
  write("memory.json", kMemory);
}

TEST_F(Page, NamesTheLineOfTheMetrics) {
  write("metrics.jsonl", std::string(kLine) + "{\"step\": 2, \"loss\n" + kLine);
  expect_refused({"metrics.jsonl:2", "malformed JSON"});
  write("metrics.jsonl", std::string(kLine) + "{\"step\": 2, \"loss\": \"low\", \"tokens\": 1, \"seconds\": 1}\n");
  expect_refused({"metrics.jsonl:2: loss", "\"low\""});
  write("metrics.jsonl", std::string(5000, 'x'));
  expect_refused({"metrics.jsonl:1", "a line of more than"});
  // The last line of a run that was killed, or that is being written.
  write("metrics.jsonl", std::string(kLine) + "{\"step\": 2, \"lo");
  EXPECT_EQ(read_run(directory).metrics.last->step, 1);
}

TEST_F(Page, FollowsARun) {
  fs::remove_all(directory);
  LiveView view(directory);
  view.poll();
  EXPECT_EQ(view.state(), RunState::absent);
  EXPECT_FALSE(view.over());
  fs::create_directories(directory);
  write("plan.json", kPlan);
  EXPECT_TRUE(view.poll());
  EXPECT_EQ(view.state(), RunState::starting);
  char host[65] = {};
  ::gethostname(host, sizeof host - 1);
  const auto process = [&](const std::string& pid, const std::string& ticks) {
    write("process.json", "{\"pid\": " + pid + ", \"start_ticks\": " + ticks + ", \"host\": \"" + host +
                              "\", \"started_unix_ms\": 5, \"first_step\": 1, \"total_steps\": 40}");
  };
  process(std::to_string(::getpid()), "0");
  write("metrics.jsonl", kLine);
  EXPECT_TRUE(view.poll());
  EXPECT_EQ(view.state(), RunState::running);
  EXPECT_FALSE(view.poll());
  EXPECT_NE(view.line().find("step 1/40  loss 4.5000"), std::string::npos) << view.line();
  EXPECT_NE(view.line().find("19.5 s left"), std::string::npos) << view.line();
  EXPECT_NE(view.screen(80).find("1/40"), std::string::npos);
  process(std::to_string(::getpid()), "1");  // the process id was reused by another process
  EXPECT_TRUE(view.poll());
  EXPECT_EQ(view.state(), RunState::died);
  EXPECT_NE(view.line().find("is gone"), std::string::npos);
  const std::string end =
      "{\"arena_planned_bytes\": 1, \"arena_measured_bytes\": 1, \"process_peak_rss_bytes\": 1, \"budget_bytes\": 1, "
      "\"steps\": 40, \"total_steps\": 40, \"stopped_by\": 0, \"started_unix_ms\": ";
  write("run.json", end + "4}");  // from an earlier start
  view.poll();
  EXPECT_EQ(view.state(), RunState::died);
  write("run.json", end + "5}");
  EXPECT_TRUE(view.poll());
  EXPECT_EQ(view.state(), RunState::finished);
  EXPECT_TRUE(view.over());
}

TEST_F(Page, AnEarlyEndSaysWhy) {
  constexpr const char* kEnd =
      R"({"arena_planned_bytes": 1, "arena_measured_bytes": 1, "process_peak_rss_bytes": 1, "budget_bytes": 1,
          "steps": 1, "total_steps": 40, "stopped_by": 0, "started_unix_ms": 5)";
  write("process.json", R"({"pid": 1, "start_ticks": 1, "host": "h", "started_unix_ms": 5, "first_step": 1,
                            "total_steps": 40})");
  write("run.json", std::string(kEnd) + "}");
  EXPECT_NE(made().find("Finished after step 1."), std::string::npos);
  write("run.json",
        std::string(kEnd) + R"(, "early_stop": {"evaluations": 3, "best_step": 7, "best_eval_loss": 1.25}})");
  const std::string reason = "no better evaluation loss in 3 evaluations, the best was 1.2500 at step 7";
  EXPECT_NE(made().find("Ended early after step 1 of 40: " + reason), std::string::npos);
  LiveView view(directory);
  view.poll();
  EXPECT_EQ(view.state(), RunState::finished);
  EXPECT_NE(view.line().find("ended early after step 1 of 40: " + reason), std::string::npos) << view.line();
  EXPECT_NE(view.screen(80).find("\n" + reason + "\n"), std::string::npos) << view.screen(80);
  write("run.json", std::string(kEnd) + R"(, "early_stop": {"evaluations": 1, "best_step": 0, "best_eval_loss": 0}})");
  EXPECT_NE(made().find("in 1 evaluation.</p>"), std::string::npos);
  write("run.json", std::string(kEnd) + R"(, "early_stop": 3})");
  expect_refused({"run.json", "early_stop"});
}

TEST_F(Page, ScreenFitsTheTerminal) {
  LiveView view(directory);
  view.poll();
  for (const size_t columns : {20u, 40u, 79u, 200u}) {
    const std::string screen = view.screen(columns);
    size_t characters = 0;
    for (const char c : screen) {
      if (c == '\n') {
        EXPECT_LE(characters, columns);
        characters = 0;
      } else {
        characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      }
      EXPECT_NE(c, '\x1b');
    }
  }
}

TEST_F(Page, TheMeasuredPeakIsOfThePlanShown) {
  constexpr const char* kProcess =
      R"({"pid": 1, "start_ticks": 1, "host": "h", "started_unix_ms": 1, "first_step": 2, "total_steps": 9})";
  write("process.json", kProcess);
  EXPECT_EQ(made().find("measured peak"), std::string::npos);  // step 1 had another plan
  write("metrics.jsonl", std::string(kLine) +
                             R"({"step": 2, "loss": 4.5, "tokens": 4096, "seconds": 0.5, "resident_bytes": 52428800})"
                             "\n");
  EXPECT_NE(made().find("<dt>measured peak</dt><dd>50.0 MiB"), std::string::npos);
}

}  // namespace
}  // namespace headroom::report
