// Published configurations: each is read, or refused with a line; those that name a model get an estimate, the others
// say what is missing and get one with --params.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "doctor/answer/answer.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigs = test::data_file("configs");

struct Tally {
  int read = 0, refused = 0, named = 0, estimated = 0, unnamed = 0;
};

Answer ask(const Request& request) {
  std::istringstream nothing;
  return answer(request, nothing);
}

void count(Request request, Tally& tally) {
  request.gpu = "a100-80gb";
  Answer first;
  try {
    first = ask(request);
  } catch (const Error& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find(fs::path(request.configs[0]).filename().string() + ":"), std::string::npos) << what;
    ++tally.refused;
    return;
  }
  ++tally.read;
  const Job& job = *first.report.incident.job;
  if (!job.model.empty() || !job.architecture.empty()) {
    ++tally.named;
    tally.estimated += first.report.incident.estimate.has_value();
    return;
  }
  ++tally.unnamed;
  EXPECT_NE(screen(first.report).find("--params"), std::string::npos) << request.configs[0];
  request.parameters = "7B";
  EXPECT_TRUE(ask(request).report.incident.estimate.has_value()) << request.configs[0];
}

TEST(Corpus, ConfigurationsThatNameAModelGetAnEstimate) {
  Tally tally;
  for (const auto& entry : fs::recursive_directory_iterator(kConfigs)) {
    if (!entry.is_regular_file()) continue;
    Request request;
    request.configs = {entry.path().string()};
    const int64_t rows = entry.path().extension() == ".jsonl" ? 14 : 1;
    for (request.row = 1; request.row <= rows; ++request.row) count(request, tally);
  }
  EXPECT_GE(tally.read, 215);
  EXPECT_LE(tally.refused, 1);
  EXPECT_GE(tally.estimated, 0.95 * tally.named) << tally.estimated << " of " << tally.named;
  RecordProperty("named", tally.named);
  RecordProperty("estimated", tally.estimated);
  RecordProperty("unnamed", tally.unnamed);
}

}  // namespace
}  // namespace headroom::doctor
