// Who works by keyboard stays where they were, also where parts of the page are built anew.

const FOCUSABLE = "button, input, select, summary, [tabindex]";

const nameOf = (element) => element.dataset.key ?? element.getAttribute("aria-label") ?? element.textContent;

const usable = (element) => element.isConnected && !element.disabled && element.getClientRects().length > 0;

/**
 * Build something anew. If that takes away what has the focus, or disables it, the focus goes to what has the same name
 * in the same panel, or else to what stands in its place.
 */
export function keepingFocus(root, build) {
  const focused = root.getRootNode().activeElement;
  const mine = focused && root.contains(focused);
  const panel = mine ? focused.closest("section, details") ?? root : null;
  const places = () => [...panel.querySelectorAll(FOCUSABLE)].filter(usable);
  const place = mine ? places().indexOf(focused) : 0;
  build();
  if (!mine || usable(focused)) return;
  const left = places();
  const next = left.find((element) => nameOf(element) === nameOf(focused)) ?? left[Math.min(Math.max(place, 0), left.length - 1)];
  next?.focus({ preventScroll: true });
}
