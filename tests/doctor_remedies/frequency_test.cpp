// The table of frequencies is that of the stored threads, and the third remedy gives way to a far more frequent one.
#include "doctor/remedies/frequency.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/remedies/technique.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using Json = nlohmann::json;

std::optional<ThreadKind> kind_of_thread(const Json& thread) {
  const Json message = thread.value("message", Json::object());
  const std::string phase = message.value("phase", ""), system = thread["system"];
  if (phase == "host_ram" || phase == "data") return ThreadKind::host;
  if (system.starts_with("TensorFlow")) return ThreadKind::tensorflow;
  if (system.starts_with("PyTorch")) return ThreadKind::own_program;
  return std::nullopt;
}

TEST(Frequency, IsThatOfTheStoredThreads) {
  std::ifstream file(std::string(HEADROOM_SOURCE_DIR) + "/tests/doctor_remedies/threads.jsonl");
  std::map<ThreadKind, std::map<std::string, int>> solved;
  std::map<ThreadKind, int> all;
  for (std::string line; std::getline(file, line);) {
    const Json thread = Json::parse(line);
    if (thread.contains("set")) continue;  // the table was tested with these
    const std::optional<ThreadKind> kind = kind_of_thread(thread);
    if (!kind) continue;
    ++all[*kind];
    std::set<std::string> names;
    for (const Json& name : thread["named"]) names.insert(name.get<std::string>());
    for (const std::string& name : names) ++solved[*kind][name];
  }
  for (const ThreadKind kind : {ThreadKind::own_program, ThreadKind::tensorflow, ThreadKind::host}) {
    double last = 1;
    for (const Frequency& each : frequencies(kind)) {
      EXPECT_NO_THROW(technique(each.technique));
      EXPECT_NEAR(each.share, static_cast<double>(solved[kind][std::string(each.technique)]) / all[kind], 0.01)
          << each.technique;
      EXPECT_LE(each.share, last) << each.technique;
      last = each.share;
    }
  }
}

std::vector<Remedy> remedies_of(std::initializer_list<const char*> names) {
  std::vector<Remedy> remedies;
  for (const char* name : names) {
    remedies.emplace_back().name = name;
    remedies.back().evidence = 0.6;
  }
  return remedies;
}
std::string third_of(std::vector<Remedy> remedies) {
  place_the_frequent(ThreadKind::own_program, remedies);
  return remedies[2].name;
}

TEST(Frequency, TheThirdGivesWayToAFarMoreFrequentOne) {
  EXPECT_EQ(third_of(remedies_of({"no-grad", "input-size", "half-inference", "micro-batch"})), "micro-batch");
  EXPECT_EQ(third_of(remedies_of({"micro-batch", "input-size", "half-inference", "no-grad"})), "half-inference");
  EXPECT_EQ(third_of(remedies_of({"no-grad", "half-inference", "input-size", "micro-batch"})), "input-size");
}

TEST(Frequency, NotToOneThatWasAttempted) {
  std::vector<Remedy> remedies = remedies_of({"no-grad", "input-size", "half-inference", "micro-batch"});
  remedies[3].attempted = true;
  EXPECT_EQ(third_of(remedies), "half-inference");
}

TEST(Frequency, NotBeforeWhatSignsSupport) {
  std::vector<Remedy> remedies = remedies_of({"no-grad", "input-size", "half-inference", "micro-batch"});
  remedies[2].evidence = 0.7;
  EXPECT_EQ(third_of(remedies), "half-inference");
}

}  // namespace
}  // namespace headroom::doctor
