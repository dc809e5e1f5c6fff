#include "data/corpus/drop_reason.h"

namespace tandem {

const char* to_string(DropReason reason) {
  switch (reason) {
    case DropReason::none: return "none";
    case DropReason::bad_row: return "bad row";
    case DropReason::missing: return "missing";
    case DropReason::unreadable: return "unreadable";
    case DropReason::empty: return "empty";
    case DropReason::not_audio: return "not audio";
    case DropReason::truncated: return "truncated";
    case DropReason::not_finite: return "not finite";
    case DropReason::bad_channels: return "bad channels";
    case DropReason::bad_rate: return "bad rate";
    case DropReason::too_short: return "too short";
    case DropReason::too_long: return "too long";
    case DropReason::no_text: return "no text";
    case DropReason::text_too_long: return "text too long";
    case DropReason::unknown_tokens: return "unknown tokens";
    case DropReason::duplicate: return "duplicate";
    case DropReason::outlier: return "outlier";
    case DropReason::count: break;
  }
  return "";
}

DropReason reason_of(AudioFault fault) {
  switch (fault) {
    case AudioFault::missing: return DropReason::missing;
    case AudioFault::unreadable: return DropReason::unreadable;
    case AudioFault::empty: return DropReason::empty;
    case AudioFault::not_audio: return DropReason::not_audio;
    case AudioFault::truncated: return DropReason::truncated;
    case AudioFault::not_finite: return DropReason::not_finite;
    case AudioFault::too_long: return DropReason::too_long;
    case AudioFault::bad_channels: return DropReason::bad_channels;
    case AudioFault::bad_rate: return DropReason::bad_rate;
    case AudioFault::too_short: return DropReason::too_short;
    case AudioFault::changed: return DropReason::unreadable;
  }
  return DropReason::unreadable;
}

bool is_fault(DropReason reason) {
  return reason >= DropReason::bad_row && reason <= DropReason::bad_rate;
}

}  // namespace tandem
