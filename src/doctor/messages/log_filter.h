// Selects the lines of a log that are worth reading.
#pragma once

#include <cstdint>
#include <vector>

#include "doctor/messages/word_scan.h"

namespace headroom::doctor {

// What a line with the word may hold.
enum LineTag : uint32_t { kMessage = 1, kFrame = 2, kTraceback = 4, kResource = 8, kSample = 16, kEvent = 32 };

// The words with their tags. Every message that a recogniser knows contains a word tagged kMessage; if a terminal
// wrapped the message, the word is in its first or second line.
std::vector<WordScan::Word> filter_words();

// The scan for all of them, built once.
const WordScan& log_filter();

}  // namespace headroom::doctor
