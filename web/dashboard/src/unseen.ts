/** Characters that are not seen, or that turn the text around them, are shown by their codes in all that the dashboard shows. */

import { type ComponentChildren, type VNode, options } from "preact";

/** Controls but tab and the ends of lines; marks, embeddings, overrides and isolates of direction; spaces without width. */
const UNSEEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** A text as it is shown. */
export function seen(text: string): string {
  return text.replace(UNSEEN, (character) => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

function allSeen(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return seen(children);
  return Array.isArray(children) ? children.map(allSeen) : children;
}

/** Every text of a screen is a child of an element: all pass here, whichever screen makes them. What is typed and edited does not. */
const others = options.vnode;
options.vnode = (vnode: VNode) => {
  const props = vnode.props as { children?: ComponentChildren; title?: unknown };
  if (props.children !== undefined) props.children = allSeen(props.children);
  if (typeof props.title === "string") props.title = seen(props.title);
  others?.(vnode);
};
