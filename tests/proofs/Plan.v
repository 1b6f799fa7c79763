(** Plans, what they mean, and the facts that are derived of them; that the facts are true is proved in Sound.v.
    Expressions are only named: whatever total functions of a row they stand for, the theorem holds ([interp]).
    Facts are about one privacy unit: a table of another unit is one that does not change. *)
Require Import List Permutation Arith Lia Bool ZArith.
From Dpsql Require Import Near Ops.
Import ListNotations.

Definition value := option Z.          (* None: NULL *)
Definition row := list value.
Definition value_eq : forall x y : value, {x = y} + {x <> y}. Proof. decide equality. apply Z.eq_dec. Defined.
Definition row_eq : forall x y : row, {x = y} + {x <> y} := list_eq_dec value_eq.

Inductive expr := Col (c : nat) | Fun (f : nat).
Inductive kind := Inner | Left | Full | Semi | Anti.
Inductive setk := UnionAll | Union | IntersectAll | Intersect | ExceptAll | Except.
(** [pins] of a filter: columns that equal a written number. *)
Inductive plan :=
| Scan (t : nat)
| Filter (p : nat) (pins : list (nat * Z)) (i : plan)
| Project (es : list expr) (i : plan)
| Unnest (f most : nat) (i : plan)
| Join (k : kind) (eqs : list (expr * expr)) (residual : option nat) (l r : plan)
| SetOp (k : setk) (l r : plan)
| Distinct (i : plan)
| Group (keys : list expr) (a : nat) (i : plan)
| Total (a : nat) (i : plan)             (* aggregates without keys: one row, also of no rows *)
| Window (part : list expr) (f : nat) (i : plan)
| Truncate (cols : list nat) (t : nat) (dropped : bool) (i : plan)
| ByRows (c : nat) (i : plan).         (* from here on the rows of an id are counted one by one; c: an id column *)

Record interp := {
  fn : nat -> row -> value;
  pred : nat -> row -> bool;           (* is true: neither false nor NULL *)
  elems : nat -> row -> list value;
  agg : nat -> list row -> row;        (* of the rows of a group, in any order *)
  agg_perm : forall f l l', Permutation l l' -> agg f l = agg f l';
  win : nat -> list row -> list row;   (* the rows of a partition, each with one column more *)
  win_perm : forall f l l', Permutation l l' -> Permutation (win f l) (win f l');
  win_rows : forall f l r, In r (win f l) -> exists r0 v, In r0 l /\ r = r0 ++ [v];
  win_each : forall f l, Permutation (map (@removelast value) (win f l)) l;
  before : row -> row -> bool;         (* salted hash, then all columns *)
  before_total : forall x y, before x y = true \/ before y x = true;
  before_trans : forall x y z, before x y = true -> before y z = true -> before x z = true;
  before_anti : forall x y, before x y = true -> before y x = true -> x = y }.

Section Widths.
Variables tw aw : nat -> nat.          (* columns of a table; of an aggregation *)
Fixpoint width (p : plan) : nat := match p with
  | Scan t => tw t
  | Filter _ _ i | Distinct i | Truncate _ _ _ i | ByRows _ i => width i
  | Project es _ => length es
  | Unnest _ _ i | Window _ _ i => S (width i)
  | Join Semi _ _ l _ | Join Anti _ _ l _ => width l
  | Join _ _ _ l r => width l + width r
  | SetOp _ l _ => width l
  | Group ks a _ => length ks + aw a
  | Total a _ => aw a
  end.
(** A row of exactly w columns; of a row that has w columns, that row. *)
Definition nulls (w : nat) : row := repeat None w.
Definition fit (w : nat) (r : row) : row := firstn w (r ++ nulls w).
Definition at_ (c : nat) (r : row) : value := nth c r None.
Definition eqv (a b : value) : bool := match a, b with Some x, Some y => Z.eqb x y | _, _ => false end.
(** Rows that agree on columns with given values, as `=` has it: NULL agrees with nothing. *)
Definition agrees (q : list (nat * Z)) (r : row) : bool := forallb (fun x => eqv (at_ (fst x) r) (Some (snd x))) q.
Definition h (k : setk) := match k with
  | UnionAll => h_union_all | Union => h_union | IntersectAll => h_intersect_all | Intersect => h_intersect
  | ExceptAll => h_except_all | Except => h_except end.

Section Eval.
Variable I : interp.
Definition ev (r : row) (e : expr) : value := match e with Col c => at_ c r | Fun f => fn I f r end.
Definition matches eqs (res : option nat) w (l r : row) : bool :=
  forallb (fun e => eqv (ev l (fst e)) (ev r (snd e))) eqs
  && match res with None => true | Some p => pred I p (fit w l ++ r) end.
Definition glue wl wr (l r : row) := fit wl l ++ fit wr r.
Definition has_null cols (r : row) := existsb (fun c => match at_ c r with None => true | _ => false end) cols.
Definition of_cols cols (r : row) := map (fun c => at_ c r) cols.
Definition trunc cols t (d : bool) (l : list row) :=
  filter (has_null cols) l ++
  (if d then drop row_eq (of_cols cols) t else keep row_eq (of_cols cols) (before I) t) (filter (fun r => negb (has_null cols r)) l).
Definition grouped ks a := group row_eq (fun r => map (ev r) ks) (fun k l => k ++ agg I a l).
Definition windowed part f w (l : list row) := by_key row_eq (fun r => map (ev r) part) (fun _ b => win I f b) (map (fit w) l).
Definition unnested f most w := flat_map (fun r => map (fun v => fit w r ++ [v]) (firstn most (elems I f r))).
Definition joined k eqs res wl wr : list row -> list row -> list row :=
  let m := matches eqs res wl in match k with
  | Inner => inner m (glue wl wr)
  | Left => left m (glue wl wr) (fun l => fit wl l ++ nulls wr)
  | Full => full m (glue wl wr) (fun l => fit wl l ++ nulls wr) (fun r => nulls wl ++ fit wr r)
  | Semi => semi m
  | Anti => anti m end.

Fixpoint eval (D : nat -> list row) (p : plan) : list row := match p with
  | Scan t => D t
  | Filter q pins i => filter (fun r => pred I q r && agrees pins r) (eval D i)
  | Project es i => map (fun r => map (ev r) es) (eval D i)
  | Unnest f most i => unnested f most (width i) (eval D i)
  | Join k eqs res l r => joined k eqs res (width l) (width r) (eval D l) (eval D r)
  | SetOp k l r => setop row_eq (h k) (eval D l) (eval D r)
  | Distinct i => nodup row_eq (eval D i)
  | Group ks a i => grouped ks a (eval D i)
  | Total a i => [agg I a (eval D i)]
  | Window part f i => windowed part f (width i) (eval D i)
  | Truncate cols t d i => trunc cols t d (eval D i)
  | ByRows _ i => eval D i
  end.

End Eval.

(** * The checker *)
Inductive protection := Unchanged | RowUnit (k : nat) | IdUnit (c : nat).
Inductive fact := Same | Rows (k : nat) | Ids (cs : list nat).
Variable policy : nat -> protection.
(** Of a table: no more than f rows agree on these columns. What the policy promises, or what was counted in a public table. *)
Variable promise : nat -> list (list nat * nat).
Definition promised (D : nat -> list row) := forall t cs f, In (cs, f) (promise t) ->
  forall q, map fst q = cs -> length (filter (agrees q) (D t)) <= f.

Definition mem (c : nat) (cs : list nat) : bool := existsb (Nat.eqb c) cs.
Fixpoint positions (es : list expr) (cs : list nat) (at0 : nat) : list nat := match es with
  | [] => []
  | Col c :: r => if mem c cs then at0 :: positions r cs (S at0) else positions r cs (S at0)
  | _ :: r => positions r cs (S at0) end.
Definition some_ids (cs : list nat) : option fact := match cs with [] => None | _ => Some (Ids cs) end.
Definition within (w : nat) (cs : list nat) := filter (fun c => c <? w) cs.
Definition on_id (eqs : list (expr * expr)) cs ds : bool :=
  existsb (fun e => match e with (Col a, Col b) => mem a cs && mem b ds | _ => false end) eqs.
Definition has_id (es : list expr) cs : bool := existsb (fun e => match e with Col a => mem a cs | _ => false end) es.
Definition row_count (f : fact) : option nat := match f with Same => Some 0 | Rows k => Some k | Ids _ => None end.

(** ** How often values repeat: at most so many rows of a plan's result agree on these columns. *)
Definition omin a b := match a, b with Some x, Some y => Some (Nat.min x y) | Some x, None => Some x | None, y => y end.
Definition otimes (a b : option nat) := match a, b with Some x, Some y => Some (x * y) | _, _ => None end.
Definition oplus (a b : option nat) := match a, b with Some x, Some y => Some (x + y) | _, _ => None end.
Definition omax1 (a : option nat) := match a with Some x => Some (Nat.max 1 x) | None => None end.
Definition subset (cs ds : list nat) := forallb (fun c => mem c ds) cs.
Definition when (b : bool) (a : option nat) := if b then a else None.
Definition behind (es : list expr) (cols : list nat) : list nat :=
  flat_map (fun c => match nth_error es c with Some (Col a) => [a] | _ => [] end) cols.
Definition bare (es : list expr) : list nat := flat_map (fun e => match e with Col a => [a] | _ => [] end) es.
Definition beyond (wl wr : nat) cols := map (fun c => c - wl) (filter (fun c => (wl <=? c) && (c <? wl + wr)) cols).
(** The number of columns that each row surely has, where it is sure. *)
Fixpoint exact (p : plan) : option nat := match p with
  | Project es _ => Some (length es)
  | Filter _ _ i | Distinct i | Truncate _ _ _ i | ByRows _ i => exact i
  | SetOp _ l r => match exact l, exact r with Some a, Some b => when (a =? b) (Some a) | _, _ => None end
  | _ => None end.
Definition once (p : plan) (cols : list nat) : option nat :=
  match exact p with Some w => when (subset (seq 0 w) cols) (Some 1) | None => None end.
Definition by_promise (ps : list (list nat * nat)) cols : option nat :=
  fold_right (fun x best => omin (when (subset (fst x) cols) (Some (snd x))) best) None ps.
Fixpoint most (p : plan) (cols : list nat) : option nat := match p with
  | Scan t => by_promise (promise t) cols
  | Filter _ pins i => most i (map fst pins ++ cols)
  | ByRows _ i => most i cols
  | Project es i => most i (behind es cols)
  | Unnest _ n i => otimes (most i (within (width i) cols)) (Some n)
  | Window _ _ i => most i (within (width i) cols)
  | Join Semi _ _ l _ | Join Anti _ _ l _ => most l cols
  | Join k eqs _ l r =>
      let a := most l (within (width l) cols) in let b := most r (beyond (width l) (width r) cols) in
      let ml := most l (bare (map fst eqs)) in let mr := most r (bare (map snd eqs)) in
      let right := negb (length (beyond (width l) (width r) cols) =? 0) in
      match k with
      | Inner => omin (otimes a mr) (omin (otimes b ml) (otimes a b))
      | Left => omin (otimes a (omax1 mr)) (omin (when right (otimes b ml)) (otimes a (omax1 b)))
      | _ => None end
  | SetOp k l r =>
      let a := most l cols in let b := most r cols in match k with
      | UnionAll => oplus a b
      | Union => omin (once p cols) (oplus a b)
      | IntersectAll => omin a b
      | Intersect => omin (once p cols) (omin a b)
      | ExceptAll => a
      | Except => omin (once p cols) a end
  | Distinct i => omin (once i cols) (most i cols)
  | Group ks _ i => omin (when (subset (seq 0 (length ks)) cols) (Some 1)) (most i (behind ks cols))
  | Total _ _ => Some 1
  | Truncate cs t _ i => omin (when (subset cs cols) (Some t)) (most i cols)
  end.

(** ** What one unit can change *)
(** k rows that differ, each moving at most g(f) rows; where none differ, no frequency is needed. *)
Definition part (k : nat) (g : nat -> nat) (f : option nat) : option nat :=
  match f with Some x => Some (k * g x) | None => if k =? 0 then Some 0 else None end.
Definition added (a b : option nat) : option fact := match a, b with Some x, Some y => Some (Rows (x + y)) | _, _ => None end.
Definition by_frequency k j s (a b : option nat) : option fact := match k with
  | Inner => added (part j (fun x => x) b) (part s (fun x => x) a)
  | Left => added (part j (Nat.max 1) b) (part s (fun x => 2 * x) a)
  | Full => added (part j (fun x => Nat.max 1 (2 * x)) b) (part s (fun x => Nat.max 1 (2 * x)) a)
  | Semi | Anti => added (Some j) (part s (fun x => x) a) end.

(** A table joined with itself: how many of its rows move, times how many share the values of the columns that are equal. *)
Fixpoint base (p : plan) : option nat := match p with Scan t => Some t | Filter _ _ i | ByRows _ i => base i | _ => None end.
Definition same_columns (eqs : list (expr * expr)) : list nat :=
  flat_map (fun e => match e with (Col a, Col b) => if a =? b then [a] else [] | _ => [] end) eqs.
Definition moved (t : nat) : option nat := match policy t with
  | Unchanged => Some 0 | RowUnit k => Some k | IdUnit c => by_promise (promise t) [c] end.
Definition itself k eqs (l r : plan) : option nat := match k, base l, base r with
  | Semi, Some t, Some t' | Anti, Some t, Some t' => if t =? t' then match moved t, by_promise (promise t) (same_columns eqs) with
      | Some m, Some f => Some (Nat.max 1 f * m) | _, _ => None end else None
  | _, _, _ => None end.
(** What is derived in two ways holds in both. *)
Definition better (a : option nat) (b : option fact) : option fact := match a, b with
  | Some x, Some (Rows y) => Some (Rows (Nat.min x y))
  | Some x, None => Some (Rows x)
  | _, _ => b end.

Fixpoint derive (p : plan) : option fact := match p with
  | Scan t => Some (match policy t with Unchanged => Same | RowUnit k => Rows k | IdUnit c => Ids [c] end)
  | Filter _ _ i | Distinct i => derive i
  | Project es i => match derive i with Some (Ids cs) => some_ids (positions es cs 0) | f => f end
  | Unnest _ most i => match derive i with
      | Some (Rows k) => Some (Rows (most * k))
      | Some (Ids cs) => some_ids (within (width i) cs)
      | f => f end
  | Join k eqs _ l r => better (itself k eqs l r) match derive l, derive r with
      | Some Same, Some Same => Some Same
      | Some (Ids cs), Some (Ids ds) => if on_id eqs cs ds then match k with
          | Inner => some_ids (within (width l) cs ++ map (fun d => width l + d) (within (width r) ds))
          | Left => some_ids (within (width l) cs)
          | Semi | Anti => Some (Ids cs)
          | Full => None end else None
      | Some (Ids cs), Some Same => match k with
          | Inner | Left => some_ids (within (width l) cs)
          | Semi | Anti => Some (Ids cs)
          | Full => None end
      | Some Same, Some (Ids ds) => match k with
          | Inner => some_ids (map (fun d => width l + d) (within (width r) ds))
          | _ => None end
      | Some f, Some g => match row_count f, row_count g with Some j, Some s =>
          by_frequency k j s (most l (bare (map fst eqs))) (most r (bare (map snd eqs))) | _, _ => None end
      | _, _ => None end
  | SetOp k l r => match derive l, derive r with
      | Some Same, Some Same => Some Same
      | Some (Ids cs), Some (Ids ds) => some_ids (filter (fun c => mem c ds) cs)
      | Some (Ids cs), Some Same => match k with UnionAll | Union => None | _ => Some (Ids cs) end
      | Some Same, Some (Ids ds) => match k with IntersectAll | Intersect => Some (Ids ds) | _ => None end
      | Some f, Some g => match row_count f, row_count g with Some j, Some s => Some (Rows (j + s)) | _, _ => None end
      | _, _ => None end
  | Group ks _ i => match derive i with
      | Some (Ids cs) => some_ids (positions ks cs 0)
      | Some (Rows k) => Some (Rows (2 * k))
      | f => f end
  | Total _ i => match derive i with
      | Some (Ids _) => None
      | Some (Rows k) => Some (Rows (Nat.min 2 (2 * k)))
      | f => f end
  | Window part _ i => match derive i with
      | Some (Ids cs) => if has_id part (within (width i) cs) then Some (Ids (within (width i) cs)) else None
      | Some (Rows _) => None
      | f => f end
  | Truncate cols t d i => match derive i with
      | Some (Ids cs) => if existsb (fun c => mem c cs) cols then Some (Ids cs) else None
      | Some (Rows k) => Some (Rows (if d then Nat.max 1 t * k else 2 * k))
      | f => f end
  | ByRows c i => match derive i, most i [c] with
      | Some (Ids cs), Some f => if mem c cs then Some (Rows f) else None
      | _, _ => None end
  end.

(** * Neighbours: D' is D with the unit's rows U beside; or k rows of a table come, go, or both. *)
Section Sound.
Variable I : interp.
Variables D U D' : nat -> list row.
Variable u : Z.
Definition neighbours := forall t, match policy t with
  | Unchanged => Permutation (D' t) (D t) /\ Permutation (U t) (D t)
  | RowUnit k => near k (D t) (D' t)
  | IdUnit c => Permutation (D' t) (D t ++ U t) /\ (forall r, In r (D t) -> at_ c r <> Some u)
                /\ (forall r, In r (U t) -> at_ c r = Some u) end.

Definition holds (p : plan) (f : fact) : Prop := match f with
  | Same => Permutation (eval I D' p) (eval I D p) /\ Permutation (eval I U p) (eval I D p)
  | Rows k => near k (eval I D p) (eval I D' p)
  | Ids cs => Permutation (eval I D' p) (eval I D p ++ eval I U p)
      /\ (forall c, In c cs -> forall r, In r (eval I D p) -> at_ c r <> Some u)
      /\ (forall c, In c cs -> forall r, In r (eval I U p) -> at_ c r = Some u) end.
End Sound.
End Widths.
