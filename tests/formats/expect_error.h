// Expects a headroom::Error of a kind, with a remedy, whose message contains a text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/error.h"

namespace headroom {

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

}  // namespace headroom
