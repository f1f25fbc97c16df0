// Real threads with known outcomes, as facts (threads.jsonl): the figures that the message printed, the words that show
// the situation, what solved it, and the techniques for that. Threads with a configuration, and those in which only the
// text around the message shows the situation (by_text), are listed for completeness.
#include <fstream>
#include <nlohmann/json.hpp>

#include "incidents.h"

namespace headroom::doctor {
namespace {

using Json = nlohmann::json;

std::vector<Json> threads() {
  std::ifstream file(std::string(HEADROOM_SOURCE_DIR) + "/tests/doctor_remedies/threads.jsonl");
  std::vector<Json> all;
  for (std::string line; std::getline(file, line);) all.push_back(Json::parse(line));
  return all;
}

Message message_of(const Json& facts) {
  Message message;
  const auto bytes = [&](const char* name, std::optional<int64_t>& field) {
    if (facts.contains(name)) field = facts[name].get<int64_t>();
  };
  message.framework = facts.value("framework", "");
  message.format = facts.value("format", "");
  message.phase = facts.value("phase", "unknown");
  bytes("requested_bytes", message.requested_bytes);
  bytes("capacity_bytes", message.capacity_bytes);
  bytes("allocated_bytes", message.allocated_bytes);
  bytes("reserved_bytes", message.reserved_bytes);
  bytes("reserved_unallocated_bytes", message.reserved_unallocated_bytes);
  bytes("free_bytes", message.free_bytes);
  bytes("process_bytes", message.process_bytes);
  if (facts.contains("device_index")) message.device_index = facts["device_index"].get<int>();
  return message;
}

Case incident_of(const Json& thread) {
  Case incident;
  incident.messages.push_back(message_of(thread["message"]));
  for (const Json& word : thread.value("log", Json::array())) incident.log_text += word.get<std::string>() + "\n";
  incident.messages[0].text = incident.log_text;
  return incident;
}

bool named(const Diagnosis& diagnosis, const Json& techniques) {
  for (size_t i = 0; i < std::min<size_t>(3, diagnosis.remedies.size()); ++i)
    for (const Json& technique : techniques)
      if (diagnosis.remedies[i].name == technique.get<std::string>()) return true;
  return false;
}

TEST(Threads, WhatSolvedThemIsAmongTheFirstThree) {
  int looked = 0;
  for (const Json& thread : threads()) {
    if (thread["configured"].get<bool>() || thread.value("by_text", false) || !thread.contains("message") ||
        thread["named"].empty())
      continue;
    ++looked;
    const Diagnosis diagnosis = diagnose(incident_of(thread));
    EXPECT_TRUE(named(diagnosis, thread["named"])) << thread["url"] << ": " << thread["fix"];
  }
  EXPECT_GE(looked, 25);
}

// A message alone proves nothing except for the length that it prints.
TEST(Threads, NoneIsSaidToFitByAMessageAlone) {
  for (const Json& thread : threads()) {
    if (!thread.contains("message")) continue;
    for (const Remedy& remedy : diagnose(incident_of(thread)).remedies)
      EXPECT_FALSE(remedy.fits_alone && remedy.name != "max-model-len") << thread["url"] << ": " << remedy.name;
  }
}

}  // namespace
}  // namespace headroom::doctor
