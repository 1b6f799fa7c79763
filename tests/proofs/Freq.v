(** How often values repeat: what [most] says of a plan's result is true, if what is promised of its tables is. *)
Require Import List Permutation Arith Lia Bool ZArith.
From Dpsql Require Import Near Ops Plan.
Import ListNotations.

Section Freq.
Variables tw aw : nat -> nat.
Variable promise : nat -> list (list nat * nat).
Variable I : interp.
Variable D : nat -> list row.
Notation width := (width tw aw).
Notation eval := (eval tw aw I D).
Notation most := (most tw aw promise).

(** ** Columns *)
Lemma mem_in c cs : mem c cs = true <-> In c cs.
Proof. unfold mem. rewrite existsb_exists. split.
  - intros (x & H & E). apply Nat.eqb_eq in E. now subst. - intros H. exists c. split; auto. apply Nat.eqb_refl. Qed.
Lemma within_in c w cs : In c (within w cs) <-> In c cs /\ c < w.
Proof. unfold within. rewrite filter_In. now rewrite Nat.ltb_lt. Qed.
Lemma subset_in cs ds : subset cs ds = true <-> incl cs ds.
Proof. unfold subset, incl. rewrite forallb_forall. split; intros H x Hx; [apply mem_in | apply mem_in]; auto. Qed.
Lemma fit_length w r : length (fit w r) = w.
Proof. unfold fit, nulls. rewrite firstn_length, app_length, repeat_length. lia. Qed.
Lemma at_fit c w r : c < w -> at_ c (fit w r) = at_ c r.
Proof.
  intros H. unfold at_, fit, nulls. revert c r H. induction w as [|w IH]; intros c r H; [lia |].
  destruct r as [|x r]; simpl.
  - destruct c; auto. clear IH. assert (E : forall n k, nth k (firstn n (repeat (None : value) n)) None = None).
    { induction n; destruct k; simpl; auto. } rewrite E. now destruct c.
  - destruct c; auto. replace (firstn w (r ++ None :: repeat None w)) with (firstn w (r ++ repeat None w)).
    + apply IH. lia.
    + change (None :: repeat None w) with (repeat (None : value) (S w)). replace (S w) with (w + 1) by lia.
      rewrite repeat_app, app_assoc. rewrite (firstn_app w (r ++ repeat None w)).
      rewrite app_length, repeat_length. replace (w - (length r + w)) with 0 by lia. simpl. now rewrite app_nil_r.
Qed.
Lemma at_left c w l s : c < w -> at_ c (fit w l ++ s) = at_ c l.
Proof. intros H. rewrite <- (at_fit c w l H). unfold at_. apply app_nth1. now rewrite fit_length. Qed.
Lemma at_right d w l s : at_ (w + d) (fit w l ++ s) = at_ d s.
Proof. unfold at_. rewrite app_nth2; rewrite fit_length; [f_equal |]; lia. Qed.
Lemma at_beyond c r : length r <= c -> at_ c r = None.
Proof. intros H. unfold at_. now apply nth_overflow. Qed.
Lemma eqv_true a b : eqv a b = true -> exists z, a = Some z /\ b = Some z.
Proof. destruct a, b; simpl; try discriminate. intros E. apply Z.eqb_eq in E. subst. eauto. Qed.
Lemma eqv_refl z : eqv (Some z) (Some z) = true.
Proof. simpl. apply Z.eqb_refl. Qed.
Lemma at_map es r c a : nth_error es c = Some (Col a) -> forall s, at_ c (map (ev I r) es ++ s) = at_ a r.
Proof.
  revert c. induction es as [|e es IH]; intros [|c] H s; simpl in *; try discriminate.
  - inversion H; subst. auto. - apply (IH c H s).
Qed.
Lemma agrees_in q r : agrees q r = true <-> forall x, In x q -> at_ (fst x) r = Some (snd x).
Proof.
  unfold agrees. rewrite forallb_forall. split; intros H x Hx.
  - destruct (eqv_true _ _ (H x Hx)) as (z & E1 & E2). now rewrite E1, E2. - rewrite (H x Hx). apply eqv_refl.
Qed.

Lemma agrees_app p q r : agrees (p ++ q) r = agrees p r && agrees q r. Proof. apply forallb_app. Qed.

(** ** Counting *)
Lemma filter_most {X} (q : X -> bool) (l : list X) : length (filter q l) <= length l.
Proof. induction l as [|x l IH]; simpl; auto. destruct (q x); simpl; lia. Qed.
Lemma filter_fewer {X} (p q : X -> bool) l : (forall x, In x l -> p x = true -> q x = true) -> length (filter p l) <= length (filter q l).
Proof.
  induction l as [|x l IH]; intros H; simpl; auto. assert (length (filter p l) <= length (filter q l)) by (apply IH; intros; apply H; auto; now right).
  destruct (p x) eqn:E; [rewrite (H x) by (auto; now left); simpl; lia | destruct (q x); simpl; lia].
Qed.
Lemma count_map {X Y} (p : Y -> bool) (f : X -> Y) l : length (filter p (map f l)) = length (filter (fun x => p (f x)) l).
Proof. induction l as [|x l IH]; simpl; auto. destruct (p (f x)); simpl; auto. Qed.
Lemma count_flat {X Y} (p : Y -> bool) (f : X -> list Y) xs :
  length (filter p (flat_map f xs)) = sum (fun x => length (filter p (f x))) xs.
Proof. induction xs as [|x xs IH]; simpl; auto. rewrite filter_app, app_length, IH. auto. Qed.
Lemma count_split {X} (q : X -> bool) (d : X -> nat) c f xs : (forall x, In x xs -> q x = false -> d x = 0) -> (forall x, In x xs -> d x <= c) ->
  length (filter q xs) <= f -> sum d xs <= f * c.
Proof.
  intros H0 H1 H. apply Nat.le_trans with (length (filter q xs) * c); [| now apply Nat.mul_le_mono_r]. clear H.
  induction xs as [|x xs IH]; simpl; auto. pose proof (H1 x (or_introl eq_refl)).
  assert (sum d xs <= length (filter q xs) * c) by (apply IH; intros; [apply H0 | apply H1]; auto; now right).
  destruct (q x) eqn:E; simpl; [lia | rewrite (H0 x (or_introl eq_refl) E); lia].
Qed.
Lemma all_alike {X} (l : list X) (p : X -> bool) : NoDup l -> (forall x y, p x = true -> p y = true -> In x l -> In y l -> x = y) -> length (filter p l) <= 1.
Proof.
  intros Nd H. assert (Nf : NoDup (filter p l)) by now apply NoDup_filter.
  destruct (filter p l) as [|x [|y r]] eqn:E; simpl; auto. exfalso.
  assert (Hx : In x (filter p l)) by (rewrite E; now left). assert (Hy : In y (filter p l)) by (rewrite E; right; now left).
  apply filter_In in Hx, Hy. assert (x = y) by (apply H; tauto). subst. inversion Nf; subst. apply H2. now left.
Qed.

(** ** Numbers that may be unknown *)
Definition bounded (n : nat) (o : option nat) : Prop := forall f, o = Some f -> n <= f.
Lemma b_none n : bounded n None. Proof. intros f E. discriminate. Qed.
Lemma b_some n f : n <= f -> bounded n (Some f). Proof. intros H g E. inversion E; subst; auto. Qed.
Lemma b_min n a b : bounded n a -> bounded n b -> bounded n (omin a b).
Proof. intros Ha Hb. destruct a as [x|], b as [y|]; simpl; auto. apply b_some. specialize (Ha x eq_refl). specialize (Hb y eq_refl). lia. Qed.
Lemma b_when n c a : (c = true -> bounded n a) -> bounded n (when c a).
Proof. destruct c; simpl; auto. intros _. apply b_none. Qed.
Lemma b_plus m n a b : bounded m a -> bounded n b -> bounded (m + n) (oplus a b).
Proof. intros Ha Hb. destruct a as [x|], b as [y|]; simpl; try apply b_none. apply b_some. specialize (Ha x eq_refl). specialize (Hb y eq_refl). lia. Qed.
Lemma b_times n a b : (forall x y, a = Some x -> b = Some y -> n <= x * y) -> bounded n (otimes a b).
Proof. intros H. destruct a as [x|], b as [y|]; simpl; try apply b_none. apply b_some. now apply H. Qed.
Lemma b_le m n o : m <= n -> bounded n o -> bounded m o.
Proof. intros L H f E. specialize (H f E). lia. Qed.

(** ** Promises *)
Lemma choose cs : forall q : list (nat * Z), incl cs (map fst q) -> exists q', map fst q' = cs /\ incl q' q.
Proof.
  induction cs as [|c cs IH]; intros q H.
  - exists []. split; auto. intros x [].
  - destruct (IH q) as (q' & E & Hq); [intros x Hx; apply H; now right |].
    assert (Hc : In c (map fst q)) by (apply H; now left). apply in_map_iff in Hc. destruct Hc as (x & <- & Hx).
    exists (x :: q'). simpl. split; [now f_equal |]. intros y [<- | Hy]; auto.
Qed.
Lemma by_promise_sound t q : promised promise D -> bounded (length (filter (agrees q) (D t))) (by_promise (promise t) (map fst q)).
Proof.
  intros P. assert (forall ps, incl ps (promise t) -> bounded (length (filter (agrees q) (D t))) (by_promise ps (map fst q))); [| now apply H].
  induction ps as [|[cs f] ps IH]; intros Hp; simpl; [apply b_none |].
  apply b_min; [| apply IH; intros x Hx; apply Hp; now right]. apply b_when. intros S. apply b_some.
  apply subset_in in S. destruct (choose cs q S) as (q' & E & Hq).
  etransitivity; [| apply (P t cs f (Hp _ (or_introl eq_refl)) q' E)]. apply filter_fewer. intros r _ A.
  apply agrees_in. intros x Hx. apply agrees_in with (x := x) in A; auto.
Qed.

(** ** Columns under other names *)
Definition renamed (es : list expr) (q : list (nat * Z)) : list (nat * Z) :=
  flat_map (fun x => match nth_error es (fst x) with Some (Col a) => [(a, snd x)] | _ => [] end) q.
Lemma renamed_fst es q : map fst (renamed es q) = behind es (map fst q).
Proof.
  unfold renamed, behind. induction q as [|x q IH]; simpl; auto. rewrite map_app, IH. f_equal.
  destruct (nth_error es (fst x)) as [[a|f]|]; auto.
Qed.
Lemma renamed_agrees es q r s : agrees q (map (ev I r) es ++ s) = true -> agrees (renamed es q) r = true.
Proof.
  intros A. apply agrees_in. intros y Hy. unfold renamed in Hy. apply in_flat_map in Hy. destruct Hy as (x & Hx & Hy).
  destruct (nth_error es (fst x)) as [[a|f]|] eqn:E; try destruct Hy. inversion H; subst; simpl.
  rewrite <- (at_map es r (fst x) a E s). apply agrees_in with (x := x) in A; auto. destruct H.
Qed.
Definition lows w (q : list (nat * Z)) := filter (fun x => fst x <? w) q.
Lemma filter_map_fst (p : nat -> bool) (q : list (nat * Z)) : map fst (filter (fun x => p (fst x)) q) = filter p (map fst q).
Proof. induction q as [|x q IH]; simpl; auto. destruct (p (fst x)); simpl; now rewrite IH. Qed.
Lemma lows_fst w q : map fst (lows w q) = within w (map fst q).
Proof. apply (filter_map_fst (fun c => c <? w)). Qed.
Lemma lows_agrees w q r s : agrees q (fit w r ++ s) = true -> agrees (lows w q) r = true.
Proof.
  intros A. apply agrees_in. intros x Hx. apply filter_In in Hx. destruct Hx as [Hx L]. apply Nat.ltb_lt in L.
  rewrite <- (at_left (fst x) w r s L). apply agrees_in with (x := x) in A; auto.
Qed.
Definition highs wl wr (q : list (nat * Z)) := map (fun x => (fst x - wl, snd x)) (filter (fun x => (wl <=? fst x) && (fst x <? wl + wr)) q).
Lemma highs_fst wl wr q : map fst (highs wl wr q) = beyond wl wr (map fst q).
Proof.
  unfold highs, beyond. rewrite <- (filter_map_fst (fun c => (wl <=? c) && (c <? wl + wr))), !map_map. reflexivity.
Qed.
Lemma highs_agrees wl wr q l r : agrees q (fit wl l ++ fit wr r) = true -> agrees (highs wl wr q) r = true.
Proof.
  intros A. apply agrees_in. intros y Hy. apply in_map_iff in Hy. destruct Hy as (x & <- & Hx). simpl.
  apply filter_In in Hx. destruct Hx as [Hx L]. apply andb_true_iff in L. destruct L as [L1 L2].
  apply Nat.leb_le in L1. apply Nat.ltb_lt in L2. apply agrees_in with (x := x) in A; auto. rewrite <- A.
  replace (fst x) with (wl + (fst x - wl)) at 2 by lia. rewrite at_right, at_fit; auto. lia.
Qed.

(** ** Rows of exactly so many columns *)
Lemma exact_length p : forall w r, exact p = Some w -> In r (eval p) -> length r = w.
Proof.
  induction p as [t | q pins i IH | es i IH | fl n i IH | k eqs res l IHl r IHr | k l IHl r IHr | i IH | ks a i IH
    | a i IH | part f i IH | cols t d i IH | c i IH]; intros w x E Hx; simpl in E, Hx; try discriminate.
  - apply filter_In in Hx. apply IH; tauto.
  - inversion E; subst. apply in_map_iff in Hx. destruct Hx as (y & <- & _). apply map_length.
  - destruct (exact l) as [a|]; [| discriminate]. destruct (exact r) as [b|]; [| discriminate].
    destruct (Nat.eqb_spec a b); [| discriminate]. simpl in E. inversion E; subst.
    apply setop_in in Hx; [destruct Hx; auto |]. destruct k; reflexivity.
  - apply nodup_In in Hx. auto.
  - assert (In x (eval i)); auto. unfold trunc in Hx. apply in_app_or in Hx. destruct Hx as [Hx | Hx]; [apply filter_In in Hx; tauto |].
    assert (B : forall G : row -> list row -> list row, (forall k b y, In y (G k b) -> In y b) ->
      In x (by_key row_eq (of_cols cols) G (filter (fun r => negb (has_null cols r)) (eval i))) -> In x (eval i)).
    { intros G HG H. unfold by_key in H. apply in_flat_map in H. destruct H as (k & _ & H). apply HG in H.
      unfold block in H. apply filter_In in H. destruct H as [H _]. apply filter_In in H. tauto. }
    destruct d; unfold drop, keep in Hx; apply B in Hx; auto; clear.
    + intros k b y H. destruct (length b <=? t); [auto | destruct H].
    + intros k b y H. assert (S : forall l, In y (sort (before I) l) -> In y l).
      { induction l as [|z l IH]; simpl; auto. intros K. assert (J : forall m, In y (insert (before I) z m) -> z = y \/ In y m).
        { induction m as [|v m IHm]; simpl; [tauto |]. destruct (before I z v); simpl; intuition. }
        destruct (J _ K); auto. }
      apply S. rewrite <- (firstn_skipn t). apply in_or_app. now left.
  - auto.
Qed.
Lemma agree_all w q x y : length x = w -> length y = w -> incl (seq 0 w) (map fst q) -> agrees q x = true -> agrees q y = true -> x = y.
Proof.
  intros Lx Ly S A B. apply (nth_ext x y None None); [congruence |]. intros n Hn.
  assert (Hs : In n (map fst q)) by (apply S; apply in_seq; lia). apply in_map_iff in Hs. destruct Hs as (z & <- & Hz).
  apply agrees_in with (x := z) in A; auto. apply agrees_in with (x := z) in B; auto. unfold at_ in *. congruence.
Qed.
Lemma once_sound p q rows : NoDup rows -> (forall w x, exact p = Some w -> In x rows -> length x = w) ->
  bounded (length (filter (agrees q) rows)) (once p (map fst q)).
Proof.
  intros Nd H. unfold once. destruct (exact p) as [w|] eqn:E; [| apply b_none]. apply b_when. intros S. apply b_some.
  apply subset_in in S. apply all_alike; auto. intros x y Ax Ay Hx Hy. apply (agree_all w q); auto.
Qed.

(** ** Set operations *)
Lemma setop_counted h q l m : h 0 0 = 0 -> forall d, (forall a b, h a b <= d a b) ->
  length (filter (agrees q) (setop row_eq h l m)) <= sum (fun x => if agrees q x then d (count_occ row_eq l x) (count_occ row_eq m x) else 0) (nodup row_eq (l ++ m)).
Proof.
  intros Z0 d Hd. unfold setop. rewrite count_flat. apply sum_le. intros x _.
  assert (E : forall n, length (filter (agrees q) (repeat x n)) = if agrees q x then n else 0).
  { induction n; simpl; [now destruct (agrees q x) |]. destruct (agrees q x) eqn:A; simpl; auto. }
  rewrite E. destruct (agrees q x); auto.
Qed.
Lemma sum_counts q (l : list row) ks : NoDup ks ->
  sum (fun x => if agrees q x then count_occ row_eq l x else 0) ks <= length (filter (agrees q) l).
Proof.
  intros Nd. induction l as [|y l IH]; simpl.
  - induction ks as [|k ks IHk]; simpl; auto. inversion Nd; subst. specialize (IHk H2). destruct (agrees q k); simpl; auto.
  - assert (E : sum (fun x => if agrees q x then if row_eq y x then S (count_occ row_eq l x) else count_occ row_eq l x else 0) ks
      <= sum (fun x => if agrees q x then count_occ row_eq l x else 0) ks + (if agrees q y then 1 else 0)).
    { clear IH. induction ks as [|k ks IHk]; simpl; [lia |]. inversion Nd; subst. specialize (IHk H2).
      destruct (row_eq y k) as [-> | N].
      - assert (Z0 : sum (fun x => if agrees q x then if row_eq k x then S (count_occ row_eq l x) else count_occ row_eq l x else 0) ks
          = sum (fun x => if agrees q x then count_occ row_eq l x else 0) ks).
        { apply sum_ext. intros x Hx. destruct (row_eq k x) as [-> |]; auto. contradiction. }
        rewrite Z0. destruct (agrees q k); lia.
      - destruct (agrees q k); lia. }
    etransitivity; [exact E |]. destruct (agrees q y); simpl; lia.
Qed.
Lemma setop_left h q l m : h 0 0 = 0 -> (forall a b, h a b <= a) -> length (filter (agrees q) (setop row_eq h l m)) <= length (filter (agrees q) l).
Proof.
  intros Z0 H. etransitivity; [apply (setop_counted h q l m Z0 (fun a _ => a)); auto |]. apply sum_counts. apply NoDup_nodup.
Qed.
Lemma setop_right h q l m : h 0 0 = 0 -> (forall a b, h a b <= b) -> length (filter (agrees q) (setop row_eq h l m)) <= length (filter (agrees q) m).
Proof.
  intros Z0 H. etransitivity; [apply (setop_counted h q l m Z0 (fun _ b => b)); auto |]. apply sum_counts. apply NoDup_nodup.
Qed.
Lemma setop_both h q l m : h 0 0 = 0 -> (forall a b, h a b <= a + b) ->
  length (filter (agrees q) (setop row_eq h l m)) <= length (filter (agrees q) l) + length (filter (agrees q) m).
Proof.
  intros Z0 H. etransitivity; [apply (setop_counted h q l m Z0 (fun a b => a + b)); auto |].
  rewrite (sum_ext _ (fun x => (if agrees q x then count_occ row_eq l x else 0) + (if agrees q x then count_occ row_eq m x else 0))).
  - rewrite sum_plus. apply Nat.add_le_mono; apply sum_counts; apply NoDup_nodup.
  - intros x _. destruct (agrees q x); auto.
Qed.
Lemma setop_nodup h l m : h 0 0 = 0 -> (forall a b, h a b <= 1) -> NoDup (setop row_eq h l m).
Proof.
  intros Z0 H. apply (NoDup_count_occ row_eq). intros x. rewrite setop_count; auto.
Qed.

(** ** Joins *)
Lemma seekers_most eqs res w r (l : list row) q : q = flat_map (fun e => match fst e with Col a => [(a, match ev I r (snd e) with Some z => z | None => 0%Z end)] | _ => [] end) eqs ->
  seekers (matches I eqs res w) r l <= length (filter (agrees q) l).
Proof.
  intros ->. apply filter_fewer. intros x _ M. unfold matches in M. apply andb_true_iff in M. destruct M as [M _].
  apply agrees_in. intros y Hy. apply in_flat_map in Hy. destruct Hy as (e & He & Hy).
  rewrite forallb_forall in M. specialize (M e He). destruct (eqv_true _ _ M) as (z & E1 & E2).
  destruct (fst e) as [a|f]; [| destruct Hy]. destruct Hy as [<- | []]. simpl in *. now rewrite E2.
Qed.
Lemma partners_most eqs res w l (rs : list row) q : q = flat_map (fun e => match snd e with Col b => [(b, match ev I l (fst e) with Some z => z | None => 0%Z end)] | _ => [] end) eqs ->
  partners (matches I eqs res w) l rs <= length (filter (agrees q) rs).
Proof.
  intros ->. apply filter_fewer. intros x _ M. unfold matches in M. apply andb_true_iff in M. destruct M as [M _].
  apply agrees_in. intros y Hy. apply in_flat_map in Hy. destruct Hy as (e & He & Hy).
  rewrite forallb_forall in M. specialize (M e He). destruct (eqv_true _ _ M) as (z & E1 & E2).
  destruct (snd e) as [a|f]; [| destruct Hy]. destruct Hy as [<- | []]. simpl in *. now rewrite E1.
Qed.
Lemma bare_left eqs (v : expr * expr -> Z) : map fst (flat_map (fun e : expr * expr => match fst e with Col a => [(a, v e)] | _ => [] end) eqs) = bare (map fst eqs).
Proof. unfold bare. induction eqs as [|e eqs IH]; simpl; auto. rewrite map_app, IH. destruct (fst e); auto. Qed.
Lemma bare_right eqs (v : expr * expr -> Z) : map fst (flat_map (fun e : expr * expr => match snd e with Col a => [(a, v e)] | _ => [] end) eqs) = bare (map snd eqs).
Proof. unfold bare. induction eqs as [|e eqs IH]; simpl; auto. rewrite map_app, IH. destruct (snd e); auto. Qed.

Section Join.
Variables (eqs : list (expr * expr)) (res : option nat) (wl wr : nat) (ls rs : list row) (q : list (nat * Z)).
Notation m := (matches I eqs res wl).
Notation ql := (lows wl q).
Notation qr := (highs wl wr q).
Lemma pairs_of l ps : length (filter (agrees q) (map (glue wl wr l) ps)) <= if agrees ql l then length (filter (agrees qr) ps) else 0.
Proof.
  rewrite count_map. destruct (agrees ql l) eqn:A.
  - apply filter_fewer. intros r _ H. unfold glue in H. now apply highs_agrees in H.
  - rewrite (filter_ext_in _ (fun _ => false)); [now induction ps |]. intros r _. destruct (agrees q (glue wl wr l r)) eqn:E; auto.
    unfold glue in E. apply lows_agrees in E. congruence.
Qed.
Lemma by_right_rows f fL : length (filter (agrees qr) rs) <= f -> (forall r, seekers m r ls <= fL) ->
  sum (fun l => length (filter (agrees qr) (filter (m l) rs))) ls <= f * fL.
Proof.
  intros Hf Hs. rewrite (sum_ext _ (fun l => partners m l (filter (agrees qr) rs))).
  - rewrite double_count. etransitivity; [apply (sum_most _ fL); auto |]. rewrite Nat.mul_comm. now apply Nat.mul_le_mono_r.
  - intros l _. unfold partners. induction rs as [|r rs' IH]; simpl; auto.
    assert (IH' : length (filter (agrees qr) (filter (m l) rs')) = length (filter (m l) (filter (agrees qr) rs'))).
    { clear. induction rs' as [|r rs' IH]; simpl; auto. destruct (m l r) eqn:M, (agrees qr r) eqn:A; simpl; rewrite ?M, ?A; simpl; auto. }
    destruct (m l r) eqn:M, (agrees qr r) eqn:A; simpl; rewrite ?M, ?A; simpl; auto.
Qed.
Lemma few_partners l : length (filter (agrees qr) (filter (m l) rs)) <= length (filter (agrees qr) rs).
Proof.
  induction rs as [|r rs' IH]; simpl; auto. destruct (m l r); simpl; destruct (agrees qr r); simpl; lia.
Qed.
Variables a b ml mr : option nat.
Hypothesis Ha : bounded (length (filter (agrees ql) ls)) a.
Hypothesis Hb : bounded (length (filter (agrees qr) rs)) b.
Hypothesis Hml : forall r, bounded (seekers m r ls) ml.
Hypothesis Hmr : forall l, bounded (partners m l rs) mr.
Lemma inner_most : bounded (length (filter (agrees q) (joined I Inner eqs res wl wr ls rs))) (omin (otimes a mr) (omin (otimes b ml) (otimes a b))).
Proof.
  set (n := length _).
  assert (L : n <= sum (fun l => if agrees ql l then length (filter (agrees qr) (filter (m l) rs)) else 0) ls).
  { unfold n. cbn [joined]. unfold inner, lookup, inner_block. rewrite count_flat. apply sum_le. intros l _. apply pairs_of. }
  apply b_min; [| apply b_min]; apply b_times; intros x y -> ->; etransitivity; try exact L.
  - apply (count_split (agrees ql)); [intros l _ ->; auto | | now apply Ha]. intros l _. destruct (agrees ql l); [| lia].
    etransitivity; [apply filter_most |]. now apply (Hmr l).
  - etransitivity; [apply (sum_le _ (fun l => length (filter (agrees qr) (filter (m l) rs)))); intros l _; destruct (agrees ql l); lia |].
    apply by_right_rows; [now apply Hb | intros r; now apply (Hml r)].
  - apply (count_split (agrees ql)); [intros l _ ->; auto | | now apply Ha]. intros l _. destruct (agrees ql l); [| lia].
    etransitivity; [apply few_partners | now apply Hb].
Qed.
Lemma pad_apart l : qr <> [] -> agrees q (fit wl l ++ nulls wr) = false.
Proof.
  intros N. destruct (agrees q (fit wl l ++ nulls wr)) eqn:E; auto. exfalso.
  destruct qr as [|y r] eqn:Q; [congruence |]. assert (Hy : In y qr) by (rewrite Q; now left).
  apply in_map_iff in Hy. destruct Hy as (x & _ & Hx). apply filter_In in Hx. destruct Hx as [Hx L].
  apply andb_true_iff in L. destruct L as [L1 L2]. apply Nat.leb_le in L1. apply agrees_in with (x := x) in E; auto.
  replace (fst x) with (wl + (fst x - wl)) in E by lia. rewrite at_right in E. unfold at_, nulls in E.
  assert (Z0 : forall k n, nth k (repeat (None : value) n) None = None) by (induction k; destruct n; simpl; auto). rewrite Z0 in E. discriminate.
Qed.
Lemma left_rows l : length (filter (agrees q) (left_block (glue wl wr) (fun l => fit wl l ++ nulls wr) l (filter (m l) rs))) <=
  if agrees ql l then Nat.max (if length qr =? 0 then 1 else 0) (length (filter (agrees qr) (filter (m l) rs))) else 0.
Proof.
  unfold left_block. destruct (filter (m l) rs) as [|r0 ps] eqn:F.
  - simpl. destruct (agrees q (fit wl l ++ nulls wr)) eqn:E; [| destruct (agrees ql l); simpl; lia].
    rewrite (lows_agrees _ _ _ _ E). destruct (length qr =? 0) eqn:Q; simpl; [lia |]. rewrite pad_apart in E; [discriminate |].
    intros Z0. rewrite Z0 in Q. discriminate.
  - etransitivity; [apply pairs_of |]. destruct (agrees ql l); [| lia]. lia.
Qed.
Lemma left_most : bounded (length (filter (agrees q) (joined I Left eqs res wl wr ls rs)))
  (omin (otimes a (omax1 mr)) (omin (when (negb (length qr =? 0)) (otimes b ml)) (otimes a (omax1 b)))).
Proof.
  set (n := length (filter _ _)).
  assert (L : n <= sum (fun l => if agrees ql l then Nat.max (if length qr =? 0 then 1 else 0) (length (filter (agrees qr) (filter (m l) rs))) else 0) ls).
  { unfold n. cbn [joined]. unfold left, lookup. rewrite count_flat. apply sum_le. intros l _. apply left_rows. }
  apply b_min; [| apply b_min].
  - apply b_times. intros x y -> Hy. destruct mr as [z|]; [| discriminate]. assert (Y : y = Nat.max 1 z) by (now inversion Hy). clear Hy.
    etransitivity; [exact L |]. apply (count_split (agrees ql)); [intros l _ ->; auto | | now apply Ha]. intros l _.
    destruct (agrees ql l); [| lia]. specialize (Hmr l z eq_refl). unfold partners in Hmr.
    pose proof (filter_most (agrees qr) (filter (m l) rs)). destruct (length qr =? 0); lia.
  - apply b_when. intros Q. apply b_times. intros x y -> ->. etransitivity; [exact L |].
    etransitivity; [apply (sum_le _ (fun l => length (filter (agrees qr) (filter (m l) rs)))) |].
    + intros l _. destruct (length qr =? 0); [discriminate |]. destruct (agrees ql l); lia.
    + apply by_right_rows; [now apply Hb | intros r; now apply (Hml r)].
  - apply b_times. intros x y -> Hy. destruct b as [z|]; [| discriminate]. assert (Y : y = Nat.max 1 z) by (now inversion Hy). clear Hy.
    etransitivity; [exact L |]. apply (count_split (agrees ql)); [intros l _ ->; auto | | now apply Ha]. intros l _.
    destruct (agrees ql l); [| lia]. specialize (Hb z eq_refl). pose proof (few_partners l). destruct (length qr =? 0); lia.
Qed.
Lemma semi_most k : k = Semi \/ k = Anti -> forall p, length (filter p (joined I k eqs res wl wr ls rs)) <= length (filter p ls).
Proof.
  intros K p. assert (E : forall B : row -> list row -> list row, (forall l ps, B l ps = [l] \/ B l ps = []) ->
    length (filter p (lookup m B ls rs)) <= length (filter p ls)).
  { intros B HB. unfold lookup. clear - HB. induction ls as [|l ls' IH]; simpl; auto. rewrite filter_app, app_length.
    destruct (HB l (filter (m l) rs)) as [-> | ->]; simpl; destruct (p l); simpl; lia. }
  destruct K; subst; cbn [joined]; apply E; intros l ps; [unfold semi_block | unfold anti_block]; destruct ps; auto.
Qed.
End Join.

(** ** Blocks *)
Lemma sum_of_blocks (key : row -> row) (p : row -> bool) rows kk : NoDup kk ->
  sum (fun k => length (filter p (block row_eq key k rows))) kk <= length (filter p rows).
Proof.
  intros Nd. induction rows as [|r rows IH].
  - clear. induction kk; simpl; auto.
  - rewrite (sum_ext _ (fun k => length (filter p (block row_eq key k rows)) + (if row_eq (key r) k then if p r then 1 else 0 else 0))).
    + rewrite sum_plus. assert (One : sum (fun k => if row_eq (key r) k then if p r then 1 else 0 else 0) kk <= if p r then 1 else 0).
      { clear IH. destruct (p r).
        - induction kk as [|k kk IHk]; simpl; auto. inversion Nd; subst. specialize (IHk H2). destruct (row_eq (key r) k) as [E|]; auto.
          rewrite (sum_ext _ (fun _ => 0)); [clear; induction kk; simpl; auto |].
          intros x Hx. destruct (row_eq (key r) x); auto. exfalso. apply H1. congruence.
        - clear. induction kk as [|k kk IHk]; simpl; auto. destruct (row_eq (key r) k); auto. }
      simpl. destruct (p r); simpl; lia.
    + intros k _. unfold block. simpl. unfold has at 1. destruct (row_eq (key r) k); simpl; [destruct (p r); simpl |]; lia.
Qed.
Lemma groups_by_rows ks a q rows : length (filter (agrees q) (grouped I ks a rows)) <= length (filter (agrees (renamed ks q)) rows).
Proof.
  unfold grouped, group, by_key. rewrite count_flat.
  set (key := fun r => map (ev I r) ks). fold (keys row_eq key rows). 
  assert (Nd : NoDup (keys row_eq key rows)) by apply NoDup_nodup.
  etransitivity; [apply (sum_le _ (fun k => length (filter (agrees (renamed ks q)) (block row_eq key k rows)))) |].
  - intros k Hk. destruct (block row_eq key k rows) as [|r b] eqn:B; simpl; auto.
    assert (Hr : In r (block row_eq key k rows)) by (rewrite B; now left). unfold block in Hr. apply filter_In in Hr.
    destruct Hr as [_ Hr]. unfold has in Hr. destruct (row_eq (key r) k) as [E|]; [| discriminate].
    destruct (agrees q (k ++ agg I a (r :: b))) eqn:A; simpl; [| lia].
    rewrite <- E in A. apply renamed_agrees in A. rewrite A. simpl. lia.
  - now apply sum_of_blocks.
Qed.
Lemma groups_once ks a q rows : incl (seq 0 (length ks)) (map fst q) -> length (filter (agrees q) (grouped I ks a rows)) <= 1.
Proof.
  intros S. unfold grouped, group, by_key. rewrite count_flat. set (key := fun r => map (ev I r) ks).
  assert (Nd : NoDup (keys row_eq key rows)) by apply NoDup_nodup.
  assert (Lk : forall k, In k (keys row_eq key rows) -> length k = length ks).
  { intros k H. unfold keys in H. apply nodup_In in H. apply in_map_iff in H. destruct H as (r & <- & _). apply map_length. }
  revert Nd Lk. generalize (keys row_eq key rows). intros kk Nd Lk.
  assert (One : forall k, In k kk -> length (filter (agrees q) (group_row (fun k l => k ++ agg I a l) k (block row_eq key k rows))) <= if agrees (lows (length ks) q) k then 1 else 0).
  { intros k Hk. destruct (block row_eq key k rows) as [|r b]; simpl; [lia |].
    destruct (agrees q (k ++ agg I a (r :: b))) eqn:A; simpl; [| lia].
    assert (F : fit (length ks) k = k) by (rewrite <- (Lk k Hk); unfold fit, nulls; rewrite firstn_app, firstn_all, Nat.sub_diag; simpl; apply app_nil_r).
    rewrite <- F in A. apply lows_agrees in A. now rewrite A. }
  etransitivity; [apply sum_le; exact One |]. rewrite <- filter_sum.
  apply all_alike; auto. intros x y Ax Ay Hx Hy. apply (agree_all (length ks) (lows (length ks) q)); auto.
  rewrite lows_fst. intros c Hc. apply within_in. split; auto. apply in_seq in Hc. lia.
Qed.
Lemma keep_few cols t d q rows : incl cols (map fst q) -> length (filter (agrees q) (trunc I cols t d rows)) <= t.
Proof.
  intros S. unfold trunc. rewrite filter_app, app_length.
  assert (Z0 : length (filter (agrees q) (filter (has_null cols) rows)) = 0).
  { clear - S. induction rows as [|r rows IH]; simpl; auto. destruct (has_null cols r) eqn:H; simpl; auto.
    destruct (agrees q r) eqn:A; simpl; auto. exfalso. apply existsb_exists in H. destruct H as (c & Hc & H).
    apply S in Hc. apply in_map_iff in Hc. destruct Hc as (x & <- & Hx). apply agrees_in with (x := x) in A; auto. now rewrite A in H. }
  rewrite Z0. simpl. set (some := filter (fun r => negb (has_null cols r)) rows).
  assert (B : forall G : row -> list row -> list row, (forall k b, length (G k b) <= t) -> (forall k b y, In y (G k b) -> In y b) ->
    length (filter (agrees q) (by_key row_eq (of_cols cols) G some)) <= t).
  { intros G HG Hin. unfold by_key. rewrite count_flat. assert (Nd : NoDup (keys row_eq (of_cols cols) some)) by apply NoDup_nodup.
    revert Nd. generalize (keys row_eq (of_cols cols) some). intros kk Nd.
    destruct (choose cols q S) as (q' & E & Hq).
    set (wanted := map (fun x => Some (snd x)) q' : row).
    assert (Hz : forall k, k <> wanted -> length (filter (agrees q) (G k (block row_eq (of_cols cols) k some))) = 0).
    { intros k N. assert (K : forall y, In y (G k (block row_eq (of_cols cols) k some)) -> agrees q y = false).
      { intros y Hy. apply Hin in Hy. unfold block in Hy. apply filter_In in Hy. destruct Hy as [_ Hy]. unfold has in Hy.
        destruct (row_eq (of_cols cols y) k) as [Ek|]; [| discriminate]. destruct (agrees q y) eqn:A; auto. exfalso. apply N. rewrite <- Ek.
        unfold of_cols, wanted. rewrite <- E, map_map. apply map_ext_in. intros x Hx. apply agrees_in with (x := x) in A; auto. }
      revert K. generalize (G k (block row_eq (of_cols cols) k some)). induction l as [|y l IH]; intros K; simpl; auto.
      rewrite (K y) by now left. apply IH. intros; apply K; now right. }
    assert (Hs : sum (fun k => length (filter (agrees q) (G k (block row_eq (of_cols cols) k some)))) kk <= if in_dec row_eq wanted kk then t else 0).
    { induction kk as [|k kk IH]; simpl; auto. apply NoDup_cons_iff in Nd as [H1 H2]. specialize (IH H2).
      destruct (row_eq k wanted) as [-> | N].
      - destruct (in_dec row_eq wanted kk); [contradiction |].
        pose proof (filter_most (agrees q) (G wanted (block row_eq (of_cols cols) wanted some))). pose proof (HG wanted (block row_eq (of_cols cols) wanted some)). lia.
      - rewrite (Hz k N). destruct (in_dec row_eq wanted kk); lia. }
    destruct (in_dec row_eq wanted kk); lia. }
  destruct d; [unfold drop | unfold keep]; apply B.
  - intros k b. destruct (Nat.leb_spec (length b) t); simpl; lia.
  - intros k b y. destruct (length b <=? t); simpl; tauto.
  - intros k b. rewrite firstn_length. lia.
  - intros k b y H. assert (R : forall l, In y (sort (before I) l) -> In y l).
    { induction l as [|z l IH]; simpl; auto. intros K. assert (J : forall m, In y (insert (before I) z m) -> z = y \/ In y m).
      { induction m as [|v m IHm]; simpl; [tauto |]. destruct (before I z v); simpl; intuition. }
      destruct (J _ K); auto. }
    apply R. rewrite <- (firstn_skipn t). apply in_or_app. now left.
Qed.
Lemma nodup_fewer (p : row -> bool) rows : length (filter p (nodup row_eq rows)) <= length (filter p rows).
Proof.
  induction rows as [|r rows IH]; simpl; auto. destruct (in_dec row_eq r rows); simpl; destruct (p r); simpl; lia.
Qed.
Lemma windows_most part f w q rows : length (filter (agrees q) (windowed I part f w rows)) <= length (filter (agrees (lows w q)) rows).
Proof.
  unfold windowed, by_key. rewrite count_flat. set (key := fun r => map (ev I r) part).
  assert (Nd : NoDup (keys row_eq key (map (fit w) rows))) by apply NoDup_nodup.
  etransitivity; [apply (sum_le _ (fun k => length (filter (agrees (lows w q)) (block row_eq key k (map (fit w) rows))))) |].
  - intros k _. set (b := block row_eq key k (map (fit w) rows)).
    rewrite <- (Permutation_length (filter_perm (agrees (lows w q)) _ _ (win_each I f b))), count_map.
    apply filter_fewer. intros x Hx A. destruct (win_rows I f b x Hx) as (r0 & v & Hr & ->). rewrite removelast_last.
    unfold b, block in Hr. apply filter_In in Hr. destruct Hr as [Hr _]. apply in_map_iff in Hr. destruct Hr as (r & <- & _).
    apply lows_agrees in A. apply agrees_in. intros y Hy. pose proof (proj1 (agrees_in _ _) A y Hy) as Q.
    apply filter_In in Hy. destruct Hy as [_ L]. apply Nat.ltb_lt in L. now rewrite at_fit.
  - etransitivity; [now apply sum_of_blocks |]. rewrite count_map. apply filter_fewer. intros r _ A. apply agrees_in. intros y Hy.
    pose proof (proj1 (agrees_in _ _) A y Hy) as Q. apply filter_In in Hy. destruct Hy as [_ L]. apply Nat.ltb_lt in L. now rewrite at_fit in Q.
Qed.
Lemma unnested_most f n w q rows : length (filter (agrees q) (unnested I f n w rows)) <= length (filter (agrees (lows w q)) rows) * n.
Proof.
  unfold unnested. rewrite count_flat. apply (count_split (agrees (lows w q))); auto.
  - intros r _ A. rewrite count_map, (filter_ext_in _ (fun _ => false)); [now induction (firstn n (elems I f r)) |].
    intros v _. destruct (agrees q (fit w r ++ [v])) eqn:E; auto. apply lows_agrees in E. congruence.
  - intros r _. etransitivity; [apply filter_most |]. rewrite map_length, firstn_length. lia.
Qed.
Lemma projected_most es q rows : length (filter (agrees q) (map (fun r => map (ev I r) es) rows)) <= length (filter (agrees (renamed es q)) rows).
Proof.
  rewrite count_map. apply filter_fewer. intros r _ A. rewrite <- (app_nil_r (map (ev I r) es)) in A. now apply renamed_agrees in A.
Qed.

Theorem most_sound (P : promised promise D) p : forall q f, most p (map fst q) = Some f -> length (filter (agrees q) (eval p)) <= f.
Proof.
  enough (H : forall q, bounded (length (filter (agrees q) (eval p))) (most p (map fst q))) by (intros q f E; now apply H).
  induction p as [t | s pins i IH | es i IH | fl n i IH | k eqs res l IHl r IHr | k l IHl r IHr | i IH | ks a i IH
    | a i IH | part f i IH | cols t d i IH | c i IH]; intros q.
  - now apply by_promise_sound.
  - cbn [Plan.most Plan.eval]. rewrite <- map_app. eapply b_le; [| apply IH].
    clear. induction (eval i) as [|x l IHl]; simpl; auto. rewrite agrees_app.
    destruct (pred I s x), (agrees pins x), (agrees q x) eqn:E; simpl; rewrite ?E; simpl; lia.
  - cbn [Plan.most Plan.eval]. rewrite <- renamed_fst. eapply b_le; [apply projected_most | apply IH].
  - cbn [Plan.most Plan.eval]. rewrite <- lows_fst. apply b_times. intros x y E Ey. inversion Ey; subst.
    etransitivity; [apply unnested_most |]. apply Nat.mul_le_mono_r. now apply (IH (lows (width i) q)).
  - assert (S : forall rr, bounded (seekers (matches I eqs res (width l)) rr (eval l)) (most l (bare (map fst eqs)))).
    { intros rr. rewrite <- (bare_left eqs (fun e => match ev I rr (snd e) with Some z => z | None => 0%Z end)).
      eapply b_le; [now apply seekers_most | apply IHl]. }
    assert (T : forall ll, bounded (partners (matches I eqs res (width l)) ll (eval r)) (most r (bare (map snd eqs)))).
    { intros ll. rewrite <- (bare_right eqs (fun e => match ev I ll (fst e) with Some z => z | None => 0%Z end)).
      eapply b_le; [now apply partners_most | apply IHr]. }
    pose proof (IHl (lows (width l) q)) as A. pose proof (IHr (highs (width l) (width r) q)) as B. rewrite lows_fst in A. rewrite highs_fst in B.
    destruct k; cbn [Plan.most Plan.eval].
    + apply inner_most; auto.
    + rewrite <- highs_fst, map_length in *. apply left_most; auto; now rewrite highs_fst.
    + apply b_none.
    + eapply b_le; [apply semi_most; auto | apply IHl].
    + eapply b_le; [apply semi_most; auto | apply IHl].
  - cbn [Plan.eval]. assert (O : (forall a b, h k a b <= 1) -> bounded (length (filter (agrees q) (setop row_eq (h k) (eval l) (eval r)))) (once (SetOp k l r) (map fst q))).
    { intros H. apply once_sound; [apply setop_nodup; auto; now destruct k |]. intros w x E Hx. now apply (exact_length (SetOp k l r)). }
    assert (Hl : (forall a b, h k a b <= a) -> bounded (length (filter (agrees q) (setop row_eq (h k) (eval l) (eval r)))) (most l (map fst q))).
    { intros H. eapply b_le; [apply setop_left; auto; now destruct k | apply IHl]. }
    assert (Hr : (forall a b, h k a b <= b) -> bounded (length (filter (agrees q) (setop row_eq (h k) (eval l) (eval r)))) (most r (map fst q))).
    { intros H. eapply b_le; [apply setop_right; auto; now destruct k | apply IHr]. }
    assert (Hb : (forall a b, h k a b <= a + b) -> bounded (length (filter (agrees q) (setop row_eq (h k) (eval l) (eval r)))) (oplus (most l (map fst q)) (most r (map fst q)))).
    { intros H. eapply b_le; [apply setop_both; auto; now destruct k | apply b_plus; auto]. }
    destruct k; cbn [Plan.most]; repeat apply b_min;
      solve [ apply O; simpl; intros; unfold h_union, h_intersect, h_except; lia
            | apply Hb; simpl; intros; unfold h_union_all, h_union; lia
            | apply Hl; simpl; intros; unfold h_intersect_all, h_intersect, h_except_all, h_except; nia || lia
            | apply Hr; simpl; intros; unfold h_intersect_all, h_intersect; lia ].
  - cbn [Plan.most Plan.eval]. apply b_min.
    + apply once_sound; [apply NoDup_nodup |]. intros w x E Hx. apply nodup_In in Hx. now apply (exact_length i).
    + eapply b_le; [apply nodup_fewer | apply IH].
  - cbn [Plan.most Plan.eval]. apply b_min.
    + apply b_when. intros S. apply b_some. apply groups_once. now apply subset_in.
    + rewrite <- renamed_fst. eapply b_le; [apply groups_by_rows | apply IH].
  - cbn [Plan.most Plan.eval]. apply b_some. etransitivity; [apply filter_most | simpl; lia].
  - cbn [Plan.most Plan.eval]. rewrite <- lows_fst. eapply b_le; [apply windows_most | apply IH].
  - cbn [Plan.most Plan.eval]. apply b_min.
    + apply b_when. intros S. apply b_some. apply keep_few. now apply subset_in.
    + eapply b_le; [| apply IH]. clear - d. (* what is kept was there *)
      unfold trunc. rewrite filter_app, app_length.
      set (some := filter (fun r => negb (has_null cols r)) (eval i)).
      assert (B : forall G : row -> list row -> list row, (forall k b, length (filter (agrees q) (G k b)) <= length (filter (agrees q) b)) ->
        length (filter (agrees q) (by_key row_eq (of_cols cols) G some)) <= length (filter (agrees q) some)).
      { intros G HG. unfold by_key. rewrite count_flat. etransitivity; [apply sum_le; intros k _; apply HG |]. apply sum_of_blocks. apply NoDup_nodup. }
      assert (E : length (filter (agrees q) (filter (has_null cols) (eval i))) + length (filter (agrees q) some) = length (filter (agrees q) (eval i))).
      { unfold some. clear. induction (eval i) as [|x l IHl]; simpl; auto. destruct (has_null cols x); simpl; destruct (agrees q x); simpl; lia. }
      rewrite <- E. apply Nat.add_le_mono_l. destruct d; [unfold drop | unfold keep]; apply B; intros k b.
      * destruct (length b <=? t); simpl; lia.
      * assert (Sp : Permutation (sort (before I) b) b).
        { clear. induction b as [|z b IH]; simpl; auto. assert (J : forall m, Permutation (insert (before I) z m) (z :: m)).
          { induction m as [|v m IHm]; simpl; auto. destruct (before I z v); auto. rewrite IHm. apply perm_swap. }
          rewrite J. now constructor. }
        rewrite <- (Permutation_length (filter_perm (agrees q) _ _ Sp)). rewrite <- (firstn_skipn t (sort (before I) b)) at 2.
        rewrite filter_app, app_length. lia.
  - cbn [Plan.most Plan.eval]. apply IH.
Qed.
End Freq.
