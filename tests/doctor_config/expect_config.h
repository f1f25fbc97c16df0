// Shared by the tests of configurations: expected errors, notes by key.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "doctor/config/config_reader.h"

namespace headroom::doctor {

template <typename Call>
void expect_error(ErrorKind kind, const std::string& part, Call call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one with: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << e.what();
    EXPECT_THAT(e.what(), testing::HasSubstr(part));
    EXPECT_FALSE(e.remedy().empty()) << e.what();
  }
}

inline const KeyNote* note_of(const std::vector<KeyNote>& notes, const std::string& key) {
  const auto found =
      std::find_if(notes.begin(), notes.end(), [&](const KeyNote& note) { return note.origin.key == key; });
  return found == notes.end() ? nullptr : &*found;
}

// The value, as written, of the key that was understood as that field; empty when there is none.
inline std::string understood_value(const Job& job, const std::string& field) {
  for (const KeyNote& note : job.keys.understood)
    if (note.text == field) return note.value;
  return {};
}

// Every key is in exactly one list.
inline void expect_all_keys(const ConfigReading& reading) {
  const Job& job = reading.job;
  EXPECT_EQ(static_cast<int64_t>(job.keys.understood.size() + job.keys.irrelevant.size() + job.keys.unknown.size() +
                                 job.keys.unreadable.size()),
            reading.keys);
}

inline Job job_of(const std::string& name, const std::string& text) {
  const ConfigReading reading = read_config_text(name, text);
  expect_all_keys(reading);
  return reading.job;
}

}  // namespace headroom::doctor
