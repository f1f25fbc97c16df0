// Which lines of a log are worth reading at all.
#pragma once

#include <cstdint>
#include <vector>

#include "doctor/messages/word_scan.h"

namespace headroom::doctor {

// What a word in a line promises.
enum LineTag : uint32_t { kMessage = 1, kFrame = 2, kTraceback = 4, kResource = 8, kSample = 16, kEvent = 32 };

// The words, tagged. One of those tagged kMessage stands in every message that a recogniser knows, and where a terminal
// wrapped the message, on one of its lines that is at most one below the first.
std::vector<WordScan::Word> filter_words();

// A search for all of them, built once.
const WordScan& log_filter();

}  // namespace headroom::doctor
