// The outputs for programs and browsers: JSON, HTML, the bundle, the batch script.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "doctor/answer/answer.h"
#include "doctor/output/batch_script.h"
#include "doctor/output/bundle.h"
#include "doctor/output/html.h"
#include "doctor/output/html_bars.h"
#include "doctor/output/json.h"
#include "doctor/output/redact.h"

namespace headroom::doctor {
namespace {

using Json = nlohmann::json;

constexpr const char* kLog = R"(Traceback (most recent call last):
  File "/home/anna.smith/project/train.py", line 12, in <module>
    loss.backward()
  File "/home/anna.smith/venv/lib/python3.11/site-packages/torch/_tensor.py", line 525, in backward
    torch.autograd.backward(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 15.77 GiB of which 1.14 GiB is free. Process 4711 has 3.00 GiB memory in use. Including non-PyTorch memory, this process has 11.62 GiB memory in use. Of the allocated memory 10.94 GiB is allocated by PyTorch, and 318.06 MiB is reserved by PyTorch but unallocated.
)";

Report report_of(const std::string& text, const std::string& parameters = "") {
  Request request;
  request.inputs = {"-"};
  request.parameters = parameters;
  std::istringstream stream(text);
  return answer(request, stream).report;
}

TEST(Json, HasTheFieldsOfTheRecord) {
  const Json json = Json::parse(report_json(report_of(kLog)));
  for (const char* key :
       {"messages", "causes", "estimate", "remedies", "smallest_fitting_set", "unknown_keys", "headroom"})
    EXPECT_TRUE(json.contains(key)) << key;
  const Json& message = json["messages"][0];
  EXPECT_EQ(message["framework"], "pytorch-cuda");
  EXPECT_EQ(message["requested_bytes"], int64_t{2} << 30);
  EXPECT_EQ(message["device_index"], 3);
  EXPECT_EQ(message["phase"], "backward");
  EXPECT_EQ(message["other_processes"][0]["pid"], 4711);
  EXPECT_TRUE(message["reserved_bytes"].is_null() || message["reserved_bytes"].is_number());
  EXPECT_TRUE(json["estimate"].is_null());
  for (const Json& remedy : json["remedies"])
    for (const char* key : {"name", "set", "saves_bytes", "slowdown", "kind", "fits_alone", "why"})
      EXPECT_TRUE(remedy.contains(key)) << key;
  EXPECT_TRUE(json["headroom"].contains("command"));
  EXPECT_TRUE(json["headroom"].contains("minimum_bytes"));
}

TEST(Json, TermsSumToTheEstimate) {
  const Json json = Json::parse(report_json(report_of(kLog, "1B")));
  int64_t sum = 0;
  for (const Json& term : json["estimate"]["terms"]) sum += term["bytes"].get<int64_t>();
  EXPECT_EQ(sum, json["estimate"]["likely_bytes"].get<int64_t>());
}

TEST(Json, BytesThatAreNoTextAreReplaced) {
  const std::string text = report_json(report_of("CUDA out of memory. Tried to allocate 2.00 GiB \xff\xfe (GPU 0)\n"));
  EXPECT_NO_THROW(Json::parse(text));
}

TEST(Html, IsOnePageWithoutOutsideLinksOrScripts) {
  const std::string page = report_html(report_of(std::string(kLog) + "<script>alert(1)</script>\n", "1B"));
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_NE(page.find("viewport"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme"), std::string::npos);
}

TEST(Html, ShowsTheSituationsWithTheirEvidenceAndAdvice) {
  const std::string page = report_html(report_of(std::string(kLog) + "  total_loss += loss <b>\n"));
  const size_t section = page.find("<h2>What this looks like</h2>");
  ASSERT_NE(section, std::string::npos);
  const size_t cause = page.find("the graphs of past steps are kept", section);
  ASSERT_NE(cause, std::string::npos);
  EXPECT_NE(page.find("seen by `total_loss += loss` in the log", cause), std::string::npos);
  EXPECT_NE(page.find("<code>total += loss.item()", cause), std::string::npos);
  EXPECT_NE(page.find("evidence 82 of 100", section), std::string::npos);
  const size_t why = page.find("<h2>Why</h2>");
  ASSERT_NE(why, std::string::npos);
  EXPECT_EQ(page.substr(why, page.find("<h2>", why + 1) - why).find("the graphs of past steps"), std::string::npos);
}

// The bar of a message: live memory, reserved memory, and the request beyond the end of the device.
TEST(Html, DrawsTheMessagesFigures) {
  const Report report = report_of(kLog);
  const std::vector<Term> terms = terms_of_message(report.incident);
  ASSERT_GE(terms.size(), 3u);
  EXPECT_EQ(terms.front().name, "live tensors");
  EXPECT_EQ(terms.back().name, "asked for");
  int64_t occupied = 0;
  for (const Term& term : terms) occupied += term.bytes;
  const Message& message = report.incident.messages.front();
  EXPECT_NEAR(static_cast<double>(occupied),
              static_cast<double>(*message.capacity_bytes - *message.free_bytes + *message.requested_bytes), 64e6);
  const std::string page = report_html(report);
  EXPECT_NE(page.find("when it failed, by the message"), std::string::npos);
  EXPECT_NE(page.find("<title>live tensors"), std::string::npos);
  EXPECT_TRUE(terms_of_message(Case()).empty());
}

TEST(Html, NamesWhatWouldDecide) {
  const std::string page = report_html(
      report_of("RuntimeError: CUDA out of memory. Tried to allocate 200.00 MiB (GPU 0; 10.76 GiB total capacity; 9.61 "
                "GiB already allocated; 95.56 MiB free; 9.70 GiB reserved in total by PyTorch)\n"));
  EXPECT_NE(page.find("<h2>What would decide</h2>"), std::string::npos);
  EXPECT_NE(page.find("<code>--micro-batch-size</code>"), std::string::npos);
}

TEST(Bundle, TellsTheFiguresAndNobodysName) {
  const std::string page = report_bundle(report_of(kLog));
  EXPECT_NE(page.find("2.00 GiB"), std::string::npos);
  EXPECT_NE(page.find("torch/_tensor.py"), std::string::npos);
  EXPECT_EQ(page.find("anna"), std::string::npos) << page;
  EXPECT_EQ(page.find("/home"), std::string::npos) << page;
}

TEST(Redact, TakesOutWhatIdentifies) {
  const std::string text = redact(
      "user bob at bob@example.com on node17.cluster.example.org (10.1.2.3) read /home/bob/data/x.txt and "
      "https://hub.example.com/bob/model?token=abc with hf_abcdefghijklmnopqrstuvwxyz012345 password=hunter2");
  for (const char* secret : {"bob@", "node17", "10.1.2.3", "/home", "hub.example", "hf_abcdef", "hunter2"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << " in " << text;
}

TEST(BatchScript, StatesWhatTheJobNeeds) {
  Report report = report_of(
      "base_model: Qwen/Qwen2.5-7B\nmicro_batch_size: 1\nsequence_len: 1024\ndatasets:\n  - path: x\n    type: "
      "alpaca\n");
  report.incident.job->devices.gpus = 2;
  const std::string script = batch_script(report, "axolotl train x.yaml");
  EXPECT_TRUE(script.starts_with("#!/bin/bash\n"));
  EXPECT_NE(script.find("--gpus-per-node=2"), std::string::npos);
  EXPECT_NE(script.find("#SBATCH --mem="), std::string::npos);
  EXPECT_NE(script.find("#SBATCH --cpus-per-task="), std::string::npos);
  EXPECT_NE(script.find("srun axolotl train x.yaml\n"), std::string::npos);
}

}  // namespace
}  // namespace headroom::doctor
