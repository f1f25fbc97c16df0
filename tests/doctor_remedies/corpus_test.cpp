// Every published configuration and every message: the answers are consistent.
#include <filesystem>
#include <fstream>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "doctor/config/config_reader.h"
#include "doctor/messages/log_scanner.h"
#include "doctor/remedies/balance.h"
#include "formats/json.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

void expect_sound(const Diagnosis& diagnosis, const std::string& what) {
  for (const Remedy& remedy : diagnosis.remedies) {
    EXPECT_TRUE(remedy.available) << what << ": " << remedy.name;
    EXPECT_GE(remedy.saves_bytes.value_or(0), 0) << what << ": " << remedy.name;
    EXPECT_GE(remedy.host_bytes.value_or(0), 0) << what << ": " << remedy.name;
    EXPECT_GT(remedy.cost, 0) << what << ": " << remedy.name;
    EXPECT_FALSE(remedy.set.empty()) << what << ": " << remedy.name;
    EXPECT_LT(remedy.set.size(), 400u) << what << ": " << remedy.set;
    EXPECT_FALSE(remedy.why.empty()) << what << ": " << remedy.name;
  }
  for (const Refusal& refusal : diagnosis.refused) {
    EXPECT_FALSE(refusal.why.empty()) << what << ": " << refusal.name;
    for (const Remedy& remedy : diagnosis.remedies) EXPECT_NE(remedy.name, refusal.name) << what;
  }
  for (size_t i = 1; i < diagnosis.causes.size(); ++i)
    EXPECT_GE(diagnosis.causes[i - 1].weight, diagnosis.causes[i].weight) << what;
}

TEST(Corpus, EveryConfigurationGetsASoundAnswer) {
  int read = 0, too_large = 0, solved = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::data_file("configs"))) {
    if (!entry.is_regular_file() || entry.path().extension() == ".jsonl") continue;
    Case incident;
    try {
      incident.job = read_config_file(entry.path()).job;
    } catch (const Error&) {
      continue;
    }
    ++read;
    incident.shape = find_model_shape(incident.job->model);
    if (!incident.shape) incident.shape = guess_model_shape(7e9);
    incident.gpu = find_gpu("rtx-3090");
    incident.capacity_bytes = incident.gpu->memory_bytes;
    incident.estimate = estimate(*incident.job, *incident.shape, incident.gpu);
    const Diagnosis diagnosis = diagnose(incident);
    const std::string what = entry.path().filename().string();
    expect_sound(diagnosis, what);
    if (diagnosis.fits.value_or(true)) continue;
    ++too_large;
    if (diagnosis.proposed_set().empty()) continue;
    ++solved;
    if (diagnosis.set_changes.empty()) continue;
    const Job changed = with_changes(*incident.job, diagnosis.set_changes);
    EXPECT_TRUE(fits(estimate(changed, *incident.shape, incident.gpu).likely_bytes, *incident.capacity_bytes)) << what;
  }
  EXPECT_GT(read, 150);
  EXPECT_GT(too_large, 50);
  // The others (70B and more in full) cannot be made to fit one such card.
  EXPECT_GT(solved, too_large * 3 / 4) << solved << " of " << too_large;
}

class Messages : public testing::TestWithParam<fs::path> {};

TEST_P(Messages, EachGetsASoundAnswer) {
  std::ifstream file(GetParam());
  ASSERT_TRUE(file);
  std::string line;
  int rows = 0, count = 0, with_cause = 0;
  while (std::getline(file, line)) {
    ++rows;
    const Json row = Json::parse(line);
    Case incident;
    incident.messages = scan_log(row["text"].get<std::string>()).messages;
    if (incident.messages.empty()) continue;
    const Diagnosis diagnosis = diagnose(incident);
    expect_sound(diagnosis, row["id"].get<std::string>());
    const std::string& framework = incident.messages[0].framework;
    for (const char* other : {"tensorflow", "jax", "paddle", "onnxruntime", "cupy", "mlx"})
      if (framework == other) {
        for (const Remedy& remedy : diagnosis.remedies)
          EXPECT_EQ(remedy.set.find("torch"), std::string::npos) << framework << ": " << remedy.set;
      }
    EXPECT_FALSE(diagnosis.remedies.empty()) << row["id"];
    with_cause += !diagnosis.causes.empty();
    ++count;
  }
  EXPECT_GE(count * 100, rows * 93);
  EXPECT_EQ(with_cause, count);
}
INSTANTIATE_TEST_SUITE_P(Files, Messages, testing::ValuesIn(test::data_files("oom_messages.jsonl")),
                         [](const auto& param) { return test::data_file_label(param.param); });

}  // namespace
}  // namespace headroom::doctor
